/** Requests about building packages, and publishing them. */
import * as v from 'valibot';
import { CurlewError } from '../core/errors.ts';
import { archField, choice, count, flag, many, path, place, text, texts, type Kind } from '../core/field.ts';
import { nearest } from '../core/nearest.ts';
import { isOsId, OS_IDS, type OsId } from '../core/os.ts';
import { request, type RequestOf } from '../core/request.ts';
import { NETWORK, STORE } from './connection.ts';
import { KEY, MAKE_CURRENT, SIGNER } from './trust.ts';

/** `OS=IMAGE`, such as `rhel-8=rocky:8`. */
const OS_IMAGE: Kind<{ readonly os: OsId; readonly image: string }> = {
  schema: v.object({ os: v.picklist(OS_IDS), image: v.string() }),
  read: (text, option) => {
    const [os = '', ...rest] = text.split('=');
    const image = rest.join('=');
    if (image === '') throw new CurlewError('USAGE', `${option} ${text}: not OS=IMAGE, such as rhel-8=rocky:8`);
    if (isOsId(os)) return { os, image };
    const near = nearest(os, OS_IDS);
    throw new CurlewError('USAGE', `${option} ${text}: ${os} is not a known operating system`, {
      hint: near === undefined ? `known: ${OS_IDS.join(', ')}` : `did you mean ${near}?`,
    });
  },
};

export const ARCH = { arch: archField('ARCH', 'amd64 or arm64 (default: amd64)') };
export const CACHE = { cache: path('DIR', 'folder for unfinished downloads') };
const ADDONS = {
  addons: texts('addon', 'names, name/version or paths (default: all)', { operand: true, offers: 'addon' }),
};
export const OUT = { out: path('DIR', 'folder for packages (default: out, next to addons)', { short: 'o' }) };
const JOBS = { jobs: count('N', 'concurrent add-ons (default: 4)', { short: 'j' }) };
const FORMAT = {
  imageFormat: choice(['oci', 'docker-archive'], 'oci (default) or docker-archive, as in kURL', { value: 'FORM' }),
};

/** Reading and fetching what add-ons consist of. */
export const INPUTS = {
  fromEngine: flag('read images that no registry has from the Docker engine'),
  allowOutsideFiles: flag('pack files that Manifests name outside their repository'),
  ...CACHE,
  packagesBy: choice(
    ['container', 'host'],
    'fetch host packages in a container or on the host (default: container, if a Docker engine responds)',
    { value: 'BACKEND' },
  ),
  builder: many(OS_IMAGE)('OS=IMAGE', "builder image for an operating system's packages"),
  containerLimit: count('MINUTES', 'time limit of a container (default: 60)'),
  containerNetwork: text('NAME', "the engine's network for containers, such as host"),
  ...NETWORK,
};
export type BuildPortsRequest = RequestOf<typeof OUT & typeof INPUTS>;

const BUILDING = {
  ...OUT,
  ...ARCH,
  ...FORMAT,
  ...JOBS,
  locked: flag('fail if anything differs from the committed Manifest.lock'),
  updateLock: flag('write the current resolution to Manifest.lock, next to the Manifest'),
  ...INPUTS,
};
export type BuildRequest = RequestOf<typeof BUILDING>;

export const BUILD = request(
  'build',
  { ...ADDONS, ...BUILDING, fromPlan: path('FILE', 'execute a plan from --dry-run') },
  { dryRun: flag('print the plan as JSON, and build nothing', { formerly: 'plan-only' }) },
);
export const OUTDATED = request('outdated', {
  ...ADDONS,
  ...OUT,
  ...ARCH,
  ...JOBS,
  ...INPUTS,
});
export const CHANGED = request('changed', {
  ...ADDONS,
  from: place('STORE', 'store with the release', { required: 'add --from with the store to compare with' }),
  since: text('R', 'release to compare with (default: the current one)'),
  batch: count('N', 'print a job matrix with N add-ons per job, as one line of JSON'),
  ...ARCH,
  ...FORMAT,
  ...STORE,
  ...INPUTS,
});
export const PUBLISH = request(
  'publish',
  {
    ...ADDONS,
    to: place('STORE', 's3://bucket/prefix, or a folder, created if missing', {
      required: 'add --to with the target store',
    }),
    release: text('R', 'release string (default: vYYYY.MM.DD-N, with the next N of today)'),
    channel: texts(
      'NAME',
      'publish this channel with the release; can be repeated (default: those of the previous release)',
    ),
    ...MAKE_CURRENT,
    commit: text('SHA', 'git commit to record with the packages (default: $GITHUB_SHA)'),
    ...SIGNER,
    key: KEY.key,
    ...STORE,
    ...BUILDING,
  },
  { dryRun: flag('show what would be built, uploaded and copied, and why; change nothing') },
);
export type PublishRequest = RequestOf<typeof PUBLISH.fields>;
