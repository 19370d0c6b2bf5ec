/** Requests about bundles: their packages, deltas and parts. */
import { CurlewError } from '../core/errors.ts';
import { choice, flag, outputFile, path, paths, place, sizeField, text, texts } from '../core/field.ts';
import { request, type RequestOf } from '../core/request.ts';
import { ARCH } from './build.ts';
import { CONFIG, NETWORK, STORE } from './connection.ts';
import { DOWNGRADE, KEY, SIGNED } from './trust.ts';

export const INVALID_SETTINGS = {
  allowInvalidSettings: flag('accept a spec with settings that the packages reject; the spec of a site must fix them'),
};
export const FORCE = { force: flag('replace an existing file') };

/** Comma-separated folders. */
const folders = (lists: readonly string[], option: string): readonly string[] => {
  const empty = lists.find((list) => list.split(',').includes(''));
  if (empty !== undefined) throw new CurlewError('USAGE', `${option} ${empty}: contains an empty name`);
  return lists.flatMap((list) => list.split(','));
};

const MEDIA = {
  to: {
    ...paths('FOLDER[,FOLDER…]', 'write parts to these media, filled one after the other'),
    read: folders,
  },
};
const VERIFY = { verify: flag('check images, and verify every byte of the packages while copying') };

const CHOICE = {
  with: texts('NAME[@VERSION]', "an additional package, which a site's own spec can use", { offers: 'published' }),
  without: texts('NAME', 'omit an add-on of the spec', { offers: 'published' }),
  os: {
    ...texts('OS[,OS]', 'keep host packages of these systems only, such as ubuntu-22.04,rhel-9 (default: all)'),
    read: (lists: readonly string[]): readonly string[] => lists.flatMap((list) => list.split(',')),
  },
  upgradeFrom: texts(
    '[NAME@]VERSION',
    'add packages for upgrades from this version of kubernetes (or rook@, containerd@) or later',
  ),
  layout: choice(['kurl'], "for kURL's own scripts in --kurl-scripts instead of curlew"),
  kurlScripts: path('DIR', "kURL's install.sh, join.sh, upgrade.sh, tasks.sh, and kurl/"),
};
export type ChoiceRequest = RequestOf<typeof CHOICE>;

const IMAGES = { image: texts('REF', 'an additional image, which nodes load with the others'), ...ARCH, ...NETWORK };
export type ImagesRequest = RequestOf<typeof IMAGES & Pick<typeof CHOICE, 'layout'>>;

const DRY_RUN = { dryRun: flag('show what would be copied from where, and write no bundle', { formerly: 'plan' }) };

const PLANNING = {
  spec: path('installer.yaml', 'the installer spec', { operand: true }),
  from: place('STORE', 'store with the packages: a folder or s3://bucket/prefix'),
  release: text('R', 'release with the packages (default: the current one)', { offers: 'release' }),
  ...CHOICE,
  fromPlan: path('FILE', 'execute the plan from --dry-run --out instead of a spec'),
  ...INVALID_SETTINGS,
  ...IMAGES,
  ...KEY,
  ...DOWNGRADE,
  ...STORE,
};
export type BundlePlanRequest = RequestOf<typeof PLANNING & typeof DRY_RUN>;

const PARTS = { ...MEDIA, ...FORCE };
const output = { short: 'o' } as const;

const TARGET = {
  output: path('FILE', 'the bundle to write: a file, s3://bucket/prefix/name.tar.gz, or - for standard output', output),
  ...VERIFY,
  split: sizeField('SIZE', 'write parts of at most this size, such as 4480M or 1.5G'),
  ...PARTS,
  ...DRY_RUN,
  out: path('FILE', 'save the plan, for --from-plan', { with: 'dry-run' }),
  against: path('FILE', 'show what differs from this saved plan', { with: 'dry-run' }),
};
export type BundleTargetRequest = RequestOf<typeof TARGET & typeof STORE>;

export const BUNDLE = request('bundle', {
  ...TARGET,
  ...PLANNING,
  since: path('FILE', 'write a delta without the files in a bundle, or in an inventory (see curlew inventory)'),
});
export type BundleRequest = RequestOf<typeof BUNDLE.fields>;

export const INVENTORY = request('inventory', {
  places: paths('BUNDLE | FOLDER', 'what to list (default: the install folder)', { operand: true }),
  output: path('FILE', 'the inventory to write (default: standard output)', output),
  compact: flag('omit files below 4 KiB: smaller inventory, slightly larger delta'),
  withTool: flag(
    'on a node: include the running curlew; the delta is smaller, and works with install but not with apply',
  ),
  ...FORCE,
});
const needed = {
  required: 'a delta, a base and an output file are required',
  hint: 'curlew apply DELTA --base PLACE -o FILE',
} as const;

export const APPLY = request('apply', {
  delta: path('DELTA', 'the delta, or the head file of its parts', { operand: true, ...needed }),
  base: paths('PLACE', 'bundle, folder of bundles or install folder with the rest; can be repeated', needed),
  output: outputFile('FILE', 'the bundle to write', { ...output, ...needed }),
  ...FORCE,
  ...SIGNED,
  ...CONFIG,
});
export const SPLIT = request('split', {
  file: path('FILE', 'the bundle, or the head file of its parts', {
    operand: true,
    required: 'specify one file',
    hint: 'curlew split FILE --size SIZE',
  }),
  size: sizeField('SIZE', 'maximum size of a part, such as 4480M or 1.5G'),
  output: outputFile('FILE', 'base name of the parts (default: the name of the bundle)', output),
  ...MEDIA,
  verify: flag('verify every byte of the bundle while copying'),
  force: flag('replace existing parts'),
  dryRun: flag('show the parts and their sizes, and write nothing'),
});
/** How parts are written. */
export type PartsRequest = RequestOf<Pick<typeof SPLIT.fields, 'output' | 'to' | 'force' | 'verify'>>;

const CHECKED_PARTS = {
  head: path('HEAD', 'the file NAME.parts.json of the parts', {
    operand: true,
    required: 'specify the head file',
    hint: 'curlew join-parts NAME.parts.json -o FILE',
  }),
  folders: paths('FOLDER', 'more folders with parts', { operand: true }),
  ...SIGNED,
  ...DOWNGRADE,
  ...CONFIG,
};
export const CHECK_PARTS = { name: 'check parts', fields: CHECKED_PARTS };
export type BundlePartsRequest = RequestOf<typeof CHECKED_PARTS>;

const joined = path('FILE', 'the bundle to write, or - for standard output', output);

export const JOIN_PARTS = request(
  'join-parts',
  { ...CHECKED_PARTS, output: joined, ...FORCE },
  { check: flag('check every part, and write nothing') },
);
export const JOIN_TO_FILE = {
  name: 'join parts',
  fields: { ...JOIN_PARTS.fields, output: { ...joined, required: 'add -o with the output file' } },
};
