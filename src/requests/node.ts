/** Requests about a node: runs of an installer spec, removals, and what is installed. */
import * as v from 'valibot';
import {
  age,
  choice,
  choiceOf,
  count,
  duration,
  flag,
  numberOf,
  one,
  outputFile,
  path,
  paths,
  places,
  text,
  texts,
} from '../core/field.ts';
import { INSTALL_DIRECTORY } from '../core/layout.ts';
import { request, type RequestOf } from '../core/request.ts';
import { RUNTIME_NAMES } from '../runtime/images/image-runtime.ts';
import { CHECK_MODES } from '../runtime/prepare/request.ts';
import { DRY_RUN } from './channel.ts';
import { CONFIG, STORE, WEB, type ADDRESS } from './connection.ts';
import { DOWNGRADE, SIGNED } from './trust.ts';

const decided = { plan: 'decided' } as const;
const source = { plan: 'source' } as const;
const kept = { plan: 'kept' } as const;
const located = { located: true, plan: 'decided' } as const;

export const FOLDER = {
  installDir: path('DIR', `install folder (default: ${INSTALL_DIRECTORY})`, located),
  root: path('DIR', 'the folder of a trial with --root', located),
};
export type FolderRequest = RequestOf<typeof FOLDER>;

/** Flags of kURL's scripts, which override the spec. */
export const FLAG_WORDS = {
  flags: texts('FLAG', "flags of kURL's scripts, such as ha or labels=a=b", { operand: true }),
};
export type FlagRequest = FolderRequest & RequestOf<typeof FLAG_WORDS>;

const UNCONFINED = {
  unconfined: flag('with --root, or as a user other than root: NO sandbox, hooks change this machine itself', located),
};

const CLUSTER = {
  kubeconfig: path('FILE', 'with --root: let hooks change this cluster, over the network of this machine', located),
  context: text('NAME', 'the context in it (default: its current one)', { ...located, with: 'kubeconfig' }),
};

/** The reach of hooks of a trial. */
export const NODE_REACH = {
  network: text('host', 'with --root: allow hooks to use the network of this machine (default: none)', located),
  env: texts(
    'NAME',
    'with --root: pass this variable to hooks; if it names files, like KUBECONFIG, hooks can read them',
    decided,
  ),
  ...CLUSTER,
};

const TARGET = {
  installDir: FOLDER.installDir,
  root: path('DIR', 'a trial: hooks run in a sandbox, and their writes go to DIR', located),
  ...NODE_REACH,
  ...UNCONFINED,
};
export type TargetRequest = RequestOf<typeof TARGET>;

const HOOK_TIMEOUT = {
  hookTimeout: text('TIME', 'time limit of a hook: 90s (or 90), 30m, 2h; 0: none (default: none)', decided),
};

export const NODE_HOOKS = { ...HOOK_TIMEOUT, yes: flag('answer yes to questions of hooks', { short: 'y', ...kept }) };
export type HookRequest = RequestOf<typeof NODE_HOOKS>;

const IMAGES = { skipImages: flag('do not load images', decided) };

/** Runs that are mostly determined by the state of the node. */
export type KeptRequest = RequestOf<typeof TARGET & typeof NODE_HOOKS & typeof IMAGES>;

export const SOURCE = {
  bundle: path('FILE', 'install packages of a bundle', source),
  dir: path('DIR', 'install packages of an unpacked bundle; moves its files (a trial copies them)', source),
  from: places(
    'STORE|URL|DIR',
    'fetch packages from a store, a web server with a store (repeat for mirrors), or a folder of builds',
    source,
  ),
  release: text('R', 'the release (default: the current one)', { ...kept, offers: 'release', with: 'from' }),
  installer: path('FILE', 'installer spec: add-ons and their settings', kept),
};
export type SourceRequest = RequestOf<typeof SOURCE & typeof SIGNED & typeof DOWNGRADE & typeof ADDRESS>;

/** Not saved with a plan: settings may be secret. */
export const NODE_SETTINGS = { set: texts('NAME.FIELD=VALUE', 'override a setting of the spec') };
export type SpecRequest = RequestOf<Pick<typeof SOURCE, 'installer'> & typeof NODE_SETTINGS>;

export const IGNORE = { ignore: texts('TITLE', 'ignore a host preflight with this title; can be repeated', decided) };

/** Everything about a run of a spec but its plan; saved with the run. */
const SPEC_RUN = {
  ...FLAG_WORDS,
  ...SOURCE,
  ...NODE_SETTINGS,
  ...TARGET,
  drainTimeout: duration('TIME', 'how long pods may take to end before Kubernetes is upgraded (default: 5m)', decided),
  reapply: flag('also install add-ons that are already applied', decided),
  allowDowngrade: flag(
    'allow an older version of an installed add-on, or a signed bundle older than one seen before',
    decided,
  ),
  dropPrevious: flag('do not keep previous packages: curlew rollback cannot undo this run', decided),
  prune: flag('remove add-ons that are no longer in the spec, like curlew uninstall', decided),
  keepData: flag('ask their hooks to keep data (CURLEW_KEEP_DATA=1)', { ...decided, with: 'prune' }),
  adopt: flag('adopt a cluster that kURL created; deletes nothing of kURL', decided),
  ...IMAGES,
  preflights: choice(
    CHECK_MODES,
    'which results of host preflights stop the run (default: enforce; with --root: ignore)',
    decided,
  ),
  ...IGNORE,
  ...NODE_HOOKS,
  ...SIGNED,
  ...STORE,
  ...WEB,
};

const planning = { group: 'Plan options', once: true } as const;
const PLAN = { plan: path('FILE', 'run a saved plan; fails if it is outdated', planning) };
const SAVE_PLAN = {
  out: path('FILE', 'save the plan', { ...planning, with: 'dry-run' }),
  force: flag('replace an existing file', { ...planning, with: 'out' }),
};
const PREVIEW_RUN = { dryRun: flag('show what a run would do, and change nothing', { once: true }) };
const PLAN_ONLY = { dryRun: { ...PREVIEW_RUN.dryRun, ...planning } };
const SPEC_COMMAND = { ...SPEC_RUN, ...PLAN, ...SAVE_PLAN };

export const INSTALL = request('install', SPEC_COMMAND, PLAN_ONLY);
export const JOIN = request('join', SPEC_COMMAND, PLAN_ONLY);
export const UPGRADE = request('upgrade', SPEC_COMMAND, PLAN_ONLY);

/** The request of a run for callers of the library: the command that it is like is a field. */
export const RUN = {
  name: 'install',
  fields: {
    kind: choice(['install', 'join', 'upgrade'], 'the command that the run is like', {
      required: 'specify the kind',
      once: true,
    }),
    ...SPEC_RUN,
    ...PLAN,
    digest: text('DIGEST', 'the digest of the only package that the spec may lead to', decided),
    installerText: text('TEXT', 'the installer spec that a resumed run has saved, instead of installer', {
      once: true,
    }),
  },
};
export type InstallRequest = RequestOf<typeof RUN.fields>;

export const PLANNED_RUN = { name: 'plan', fields: { ...RUN.fields, ...SAVE_PLAN } };
/** Options for hooks override those of the saved request. */
export const RESUME = request('resume', {
  ...FOLDER,
  ...CLUSTER,
  ...UNCONFINED,
  ...NODE_HOOKS,
  ...PREVIEW_RUN,
});
export type ResumeRequest = RequestOf<typeof RESUME.fields>;

export const ROLLBACK = request(
  'rollback',
  {
    addon: text('ADDON', 'name of the add-on', {
      operand: true,
      offers: 'installed',
      required: 'specify one add-on',
      hint: 'curlew status shows installed add-ons and unfinished changes',
    }),
    ...TARGET,
    ...IMAGES,
    ...NODE_HOOKS,
  },
  PREVIEW_RUN,
);
export type RollbackRequest = RequestOf<typeof ROLLBACK.fields>;

const REMOVAL = {
  ...TARGET,
  ...HOOK_TIMEOUT,
  yes: flag('do not ask, and answer yes to questions of hooks', { short: 'y' }),
  keepData: flag('ask hooks to keep data (CURLEW_KEEP_DATA=1)'),
  keepGoing: flag('continue after a failed hook or a missing package; the result lists them'),
};
export type RemovalRequest = RequestOf<typeof REMOVAL>;
const PREVIEW_REMOVAL = { dryRun: flag('show what would be removed, and change nothing') };

export const UNINSTALL = request(
  'uninstall',
  {
    addons: texts('ADDON', 'names of add-ons', {
      operand: true,
      offers: 'installed',
      required: 'specify at least one add-on',
      hint: 'curlew status shows installed add-ons; curlew reset removes everything',
    }),
    ...REMOVAL,
    pruneImages: flag('also remove images that no other add-on of this node uses'),
  },
  PREVIEW_REMOVAL,
);
export type UninstallRequest = RequestOf<typeof UNINSTALL.fields>;

export const RESET = request('reset', REMOVAL, PREVIEW_REMOVAL);
export type ResetRequest = RequestOf<typeof RESET.fields>;

export const JOIN_TOKEN = request('join-token', {
  controlPlane: flag('the machine becomes another control plane'),
  out: outputFile('FILE', 'the file (default: /etc/kubernetes/curlew/join.yaml)', { short: 'o' }),
});

const DRAINED = {
  node: text('NODE', 'name of the node', { operand: true, required: 'specify one node' }),
  drainTimeout: duration('TIME', 'how long its pods may take to end (default: 5m)'),
};

/** Options for what a drain does not pass by itself. */
export const PAST = {
  force: flag('also evict pods that do not come back, and those with data in emptyDir volumes'),
  ignoreBudgets: flag('at the end of its time, delete pods that a PodDisruptionBudget still keeps'),
};

export const NODE_REMOVE = request(
  'node remove',
  { ...DRAINED, yes: flag('remove it; without this, show what would be done', { short: 'y' }) },
  { dryRun: DRY_RUN },
);

export const NODE_DRAIN = request(
  'node drain',
  { ...DRAINED, ...PAST, yes: flag('drain it; without this, show what would be done', { short: 'y' }) },
  { dryRun: DRY_RUN },
);

export const NODE_REPAIR = request('node repair', {
  installDir: FOLDER.installDir,
});

export const ETCD_SNAPSHOT = request('etcd snapshot', {
  file: path('FILE', 'the file (default: one below the install folder, which keeps the last three)', { operand: true }),
  recipient: texts('age1…', 'encrypt the file for a recipient of age, who opens it with the identity'),
  copyTo: text('STORE', 'also copy it to a folder, or to s3://bucket/prefix'),
  every: duration('TIME', 'repeat the command, such as 6h, by a timer of systemd'),
  keep: count(
    'N',
    'remove all but the last N snapshots: on the node (default: 3), and of its copies (default: all stay)',
  ),
  ...STORE,
  installDir: FOLDER.installDir,
});
export type EtcdSnapshotRequest = RequestOf<typeof ETCD_SNAPSHOT.fields>;

export const ETCD_RESTORE = request('etcd restore', {
  file: path('FILE', 'the snapshot', { operand: true, required: 'specify the snapshot' }),
  confirm: text('NODE', 'the name of this machine: no other control plane runs, or starts before it is reset'),
  identity: path('FILE', 'the identity of a recipient, as age-keygen writes it, for an encrypted snapshot'),
  installDir: FOLDER.installDir,
});

export const CERTIFICATES_RENEW = request(
  'certificates renew',
  {
    within: age('TIME', 'only if one expires within this time, such as 30d, or if the last renewal has failed'),
    every: duration('TIME', 'leave it to a timer of systemd, which looks as often, such as 12h', { with: 'within' }),
    installDir: FOLDER.installDir,
  },
  { dryRun: flag('show how long they are valid, and change nothing') },
);

const TRUTH = choiceOf(['true', 'false']);
const truth = one({ ...TRUTH, schema: v.boolean(), read: (word, option) => TRUTH.read(word, option) === 'true' });

/** Without a source and a spec, only `specs` are evaluated. */
export const PREFLIGHT = request('preflight', {
  specs: paths('SPEC', 'HostPreflights of Troubleshoot', { operand: true }),
  ...FLAG_WORDS,
  bundle: { ...SOURCE.bundle, help: 'use a bundle' },
  dir: { ...SOURCE.dir, help: 'use an unpacked bundle' },
  from: { ...SOURCE.from, value: 'STORE|FACTS', help: 'use a store, or evaluate a file of facts' },
  release: SOURCE.release,
  installer: SOURCE.installer,
  ...NODE_SETTINGS,
  installDir: path('DIR', `install folder with the rest of a delta (default: ${INSTALL_DIRECTORY})`, located),
  root: path('DIR', 'for trials, as with install: the install folder is in DIR; no built-in checks', located),
  isJoin: flag('the machine joins a cluster'),
  isUpgrade: flag('the machine is already part of the cluster'),
  isPrimary: truth('true|false', 'whether the machine becomes a primary (default: true)'),
  primaryHost: texts('HOST', 'another primary of the cluster'),
  secondaryHost: texts('HOST', 'another node that is not a primary'),
  excludeBuiltin: flag('omit the built-in checks'),
  ...IGNORE,
  ignoreWarnings: flag('exit with status 2 instead of 3 for warnings'),
  timeout: duration('TIME', "time limit of a check: 10s, 2m (default: the check's own)"),
  save: path('FILE', 'also save the results as text'),
  saveFacts: path('FILE', 'save the collected facts, for --from'),
  ...SIGNED,
  ...DOWNGRADE,
  ...STORE,
  ...WEB,
});
export type PreflightRequest = RequestOf<typeof PREFLIGHT.fields>;

export const SUPPORT_BUNDLE = request(
  'support-bundle',
  {
    files: paths('FILES', 'of all machines over SSH: file or folder with one Cluster and its machines', {
      operand: true,
    }),
    out: path('FILE', 'the file (default: support-bundle-HOST-TIME.tar.gz in this folder)', { short: 'o' }),
    installDir: FOLDER.installDir,
    ...CONFIG,
  },
  { dryRun: flag('only list the files that it would contain') },
);
export type SupportBundleRequest = RequestOf<typeof SUPPORT_BUNDLE.fields>;

export const STATUS = request('status', {
  ...FOLDER,
  prometheus: path('FILE', 'also write metrics to this file, for the textfile collector of node_exporter'),
});

export const WHY = request('why', {
  addon: text('ADDON', 'name of the add-on', {
    operand: true,
    offers: 'installed',
    required: 'specify an add-on',
    hint: 'curlew status lists installed add-ons',
  }),
  ...FOLDER,
});
/** Number of last lines of a log by default. */
export const LINES = 200;
const lines = one(numberOf(1, 100_000, 'not a number from 1 to 100000'));

export const LOGS = request('logs', {
  addon: text('ADDON', 'the add-on whose logs are shown (default: the runs are listed)', {
    operand: true,
    offers: 'installed',
  }),
  hook: text('HOOK', 'a hook such as install, or the name of a function (default: all)', { operand: true }),
  run: text('ID', 'show this run'),
  lines: lines('N', `the last N lines of each log, within its last 64 KiB (default: ${LINES})`),
  ...FOLDER,
});
/** Without `bundle` and `dir`, the packages in the install folder are used. */
export const LOAD_IMAGES = request('load-images', {
  ...FLAG_WORDS,
  bundle: path('FILE', 'load the images of a bundle or package'),
  dir: path('DIR', 'load the images of an unpacked bundle'),
  ...FOLDER,
  runtime: choice(RUNTIME_NAMES, 'containerd or docker (default: the first that responds)', { value: 'NAME' }),
  dryRun: flag('show missing images, and load nothing'),
  ...SIGNED,
  ...DOWNGRADE,
  ...CONFIG,
});
export type LoadImagesRequest = RequestOf<typeof LOAD_IMAGES.fields>;
