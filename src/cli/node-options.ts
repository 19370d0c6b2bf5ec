/** Options of commands that run hooks. */
import { INSTALL_DIRECTORY } from '../core/layout.ts';
import { CHECK_MODES } from '../runtime/run/request.ts';
import type { OptionSpecs } from './command.ts';
import { SIGNED_OPTIONS, STORE_OPTIONS, WEB_OPTIONS } from './options.ts';
import { choice } from './values.ts';

/** Options of every command that runs hooks. */
export const TARGET_OPTIONS = {
  'install-dir': { type: 'string', value: 'DIR', help: `install folder (default: ${INSTALL_DIRECTORY})` },
  root: { type: 'string', value: 'DIR', help: 'a trial: hooks run in a sandbox, and what they write lands below DIR' },
  network: {
    type: 'string',
    value: 'host',
    help: 'with --root: hooks get the network of this machine (default: none)',
  },
  env: {
    type: 'string',
    multiple: true,
    value: 'NAME',
    help: 'with --root: hooks get this variable, and can read the files of one like KUBECONFIG',
  },
  unconfined: {
    type: 'boolean',
    help: 'with --root, or without being root: NO sandbox, hooks change this machine itself',
  },
} satisfies OptionSpecs;

const YES_OPTION = {
  yes: { type: 'boolean', short: 'y', help: 'answer yes to what hooks want confirmed' },
} satisfies OptionSpecs;

/** How hooks are dealt with, in every command that runs some. */
export const HOOK_OPTIONS = {
  'hook-timeout': { type: 'string', value: 'TIME', help: 'end a hook that takes longer: 90s, 30m, 2h (default: none)' },
  ...YES_OPTION,
} satisfies OptionSpecs;

/** Options of every command that removes add-ons. */
export const REMOVAL_OPTIONS = {
  ...TARGET_OPTIONS,
  ...HOOK_OPTIONS,
  yes: { type: 'boolean', short: 'y', help: 'do not ask, and answer yes to what hooks want confirmed' },
  'keep-data': { type: 'boolean', help: 'ask hooks to leave data alone (CURLEW_KEEP_DATA=1)' },
  'keep-going': { type: 'boolean', help: 'continue when a hook fails or a package is missing; the result names them' },
  'dry-run': { type: 'boolean', help: 'show what would be removed, and change nothing' },
} satisfies OptionSpecs;

const group = 'Options of plans';

export const PLAN_OPTIONS = {
  'dry-run': { type: 'boolean', help: 'show what a run would do, and change nothing', group },
  out: { type: 'string', value: 'FILE', help: 'with --dry-run: save the plan', group },
  force: { type: 'boolean', help: 'with --out: replace the file if it is there', group },
  plan: { type: 'string', value: 'FILE', help: 'run a saved plan, or refuse when it no longer holds', group },
} satisfies OptionSpecs;

/** Options of every command that runs hooks of a spec. */
export const RUN_OPTIONS = {
  bundle: { type: 'string', value: 'FILE', help: 'take the packages from a bundle' },
  dir: { type: 'string', value: 'DIR', help: 'take them from an unpacked bundle; its files are moved' },
  from: {
    type: 'string',
    multiple: true,
    value: 'STORE|URL',
    help: 'fetch them from a store, or the web server in front of one; mirrors by repeating it',
  },
  release: { type: 'string', value: 'R', help: 'with --from: another release than the current one' },
  installer: { type: 'string', value: 'FILE', help: 'installer spec: which add-ons, with which settings' },
  set: { type: 'string', multiple: true, value: 'NAME.FIELD=VALUE', help: 'a setting on top of the spec' },
  ...TARGET_OPTIONS,
  reapply: { type: 'boolean', help: 'install what is applied already, too' },
  'allow-downgrade': {
    type: 'boolean',
    help: 'install an older version of an add-on than the one that is installed, or a signed bundle older than one seen',
  },
  'drop-previous': { type: 'boolean', help: 'keep no former packages: curlew rollback cannot undo this run' },
  prune: { type: 'boolean', help: 'remove add-ons that left the spec, as curlew uninstall does' },
  'keep-data': { type: 'boolean', help: 'with --prune: ask their hooks to leave data alone (CURLEW_KEEP_DATA=1)' },
  adopt: { type: 'boolean', help: 'take over a cluster that kURL has made; nothing of kURL is deleted' },
  'skip-images': { type: 'boolean', help: 'load no images' },
  preflights: {
    type: 'string',
    read: choice(...CHECK_MODES),
    value: CHECK_MODES.join('|'),
    help: 'what host preflights may stop the run by (default: enforce; with --root: ignore)',
  },
  ignore: {
    type: 'string',
    multiple: true,
    value: 'TITLE',
    help: 'a host preflight that does not count, by its title; may be repeated',
  },
  ...HOOK_OPTIONS,
  ...PLAN_OPTIONS,
  ...SIGNED_OPTIONS,
  ...STORE_OPTIONS,
  ...WEB_OPTIONS,
} satisfies OptionSpecs;
