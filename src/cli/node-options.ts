/** Options of commands that run hooks. */
import { INSTALL_DIRECTORY } from '../core/layout.ts';
import { CHECK_MODES } from '../runtime/prepare/request.ts';
import type { OptionSpecs } from './command.ts';
import { SIGNED_OPTIONS, STORE_OPTIONS, WEB_OPTIONS } from './options.ts';
import { choice } from './values.ts';

/** Options of every command that runs hooks. */
export const TARGET_OPTIONS = {
  'install-dir': { type: 'string', value: 'DIR', help: `install folder (default: ${INSTALL_DIRECTORY})` },
  root: { type: 'string', value: 'DIR', help: 'a trial: hooks run in a sandbox, and their writes go to DIR' },
  network: {
    type: 'string',
    value: 'host',
    help: 'with --root: allow hooks to use the network of this machine (default: none)',
  },
  env: {
    type: 'string',
    multiple: true,
    value: 'NAME',
    help: 'with --root: pass this variable to hooks; if it names files, like KUBECONFIG, hooks can read them',
  },
  unconfined: {
    type: 'boolean',
    help: 'with --root, or as a user other than root: NO sandbox, hooks change this machine itself',
  },
} satisfies OptionSpecs;

export const IMAGE_OPTIONS = {
  'skip-images': { type: 'boolean', help: 'do not load images' },
} satisfies OptionSpecs;

const YES_OPTION = {
  yes: { type: 'boolean', short: 'y', help: 'answer yes to questions of hooks' },
} satisfies OptionSpecs;

/** Options for running hooks. */
export const HOOK_OPTIONS = {
  'hook-timeout': { type: 'string', value: 'TIME', help: 'time limit of a hook: 90s, 30m, 2h (default: none)' },
  ...YES_OPTION,
} satisfies OptionSpecs;

/** Options of every command that removes add-ons. */
export const REMOVAL_OPTIONS = {
  ...TARGET_OPTIONS,
  ...HOOK_OPTIONS,
  yes: { type: 'boolean', short: 'y', help: 'do not ask, and answer yes to questions of hooks' },
  'keep-data': { type: 'boolean', help: 'ask hooks to keep data (CURLEW_KEEP_DATA=1)' },
  'keep-going': { type: 'boolean', help: 'continue after a failed hook or a missing package; the result lists them' },
  'dry-run': { type: 'boolean', help: 'show what would be removed, and change nothing' },
} satisfies OptionSpecs;

const group = 'Plan options';

export const PLAN_OPTIONS = {
  'dry-run': { type: 'boolean', help: 'show what a run would do, and change nothing', group },
  out: { type: 'string', value: 'FILE', help: 'with --dry-run: save the plan', group },
  force: { type: 'boolean', help: 'with --out: replace an existing file', group },
  plan: { type: 'string', value: 'FILE', help: 'run a saved plan; fails if it is outdated', group },
} satisfies OptionSpecs;

/** Options of every command that runs hooks of a spec. */
export const RUN_OPTIONS = {
  bundle: { type: 'string', value: 'FILE', help: 'install packages of a bundle' },
  dir: { type: 'string', value: 'DIR', help: 'install packages of an unpacked bundle; moves its files' },
  from: {
    type: 'string',
    multiple: true,
    value: 'STORE|URL',
    help: 'fetch packages from a store, or a web server with a store; repeat for mirrors',
  },
  release: { type: 'string', value: 'R', help: 'with --from: the release (default: the current one)' },
  installer: { type: 'string', value: 'FILE', help: 'installer spec: add-ons and their settings' },
  set: { type: 'string', multiple: true, value: 'NAME.FIELD=VALUE', help: 'override a setting of the spec' },
  ...TARGET_OPTIONS,
  reapply: { type: 'boolean', help: 'also install add-ons that are already applied' },
  'allow-downgrade': {
    type: 'boolean',
    help: 'allow an older version of an installed add-on, or a signed bundle older than one seen before',
  },
  'drop-previous': { type: 'boolean', help: 'do not keep previous packages: curlew rollback cannot undo this run' },
  prune: { type: 'boolean', help: 'remove add-ons that are no longer in the spec, like curlew uninstall' },
  'keep-data': { type: 'boolean', help: 'with --prune: ask their hooks to keep data (CURLEW_KEEP_DATA=1)' },
  adopt: { type: 'boolean', help: 'adopt a cluster that kURL created; deletes nothing of kURL' },
  ...IMAGE_OPTIONS,
  preflights: {
    type: 'string',
    read: choice(...CHECK_MODES),
    value: CHECK_MODES.join('|'),
    help: 'which results of host preflights stop the run (default: enforce; with --root: ignore)',
  },
  ignore: {
    type: 'string',
    multiple: true,
    value: 'TITLE',
    help: 'ignore a host preflight with this title; can be repeated',
  },
  ...HOOK_OPTIONS,
  ...PLAN_OPTIONS,
  ...SIGNED_OPTIONS,
  ...STORE_OPTIONS,
  ...WEB_OPTIONS,
} satisfies OptionSpecs;
