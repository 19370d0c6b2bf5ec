/** Requests about fleets. */
import { count, duration, flag, path, paths, text, texts } from '../core/field.ts';
import { request, type RequestOf } from '../core/request.ts';
import { DRY_RUN, HELM, WATCH, YES } from './channel.ts';
import { ADDRESS, CONFIG, WEB } from './connection.ts';

const FILES = {
  files: paths('FILES', 'files and folders with the clusters and add-ons of a fleet', {
    operand: true,
    required: 'specify the files or the folder of a fleet',
  }),
};
export type FleetRequest = RequestOf<typeof FILES>;

export const FLEET_CHECK = request('fleet check', {
  ...FILES,
  allowHttp: WEB.allowHttp,
  ...CONFIG,
});

const STATE = {
  state: path('DIR', 'where passes keep their state (default: .curlew/fleet in the folder of the first FILE)'),
};
const LOOK = {
  ...FILES,
  ...STATE,
  ...HELM,
  ...WEB,
  timeout: duration('TIME', 'limit of the wait for the answer of a cluster (default: 20s)'),
  allowExec: flag('let kubeconfigs of the folder start programs for credentials (exec), and send tokens from files'),
};

const PLAN = {
  ...LOOK,
  takeOver: texts('NAME', 'also apply this add-on where it belongs to an installer, a channel or another program'),
};
export const FLEET_PLAN = request(
  'fleet plan',
  { ...PLAN, diff: flag('also show what changes in which object, by dry runs on the clusters') },
  { all: flag('also show what is as it is to be') },
);
export type FleetPlanRequest = RequestOf<typeof FLEET_PLAN.fields>;

export const FLEET_STATUS = request('fleet status', LOOK, {
  why: flag('show for each cluster that waits what holds it, and since when'),
});

const DELIVER = {
  wait: duration('TIME', 'limit of the wait until an add-on is healthy, or gone, on a cluster (default: 5m)'),
  ...HELM,
  ...ADDRESS,
};
const APPLY = { ...PLAN, ...DELIVER };
export const FLEET_APPLY = request('fleet apply', APPLY, {
  yes: YES,
  dryRun: DRY_RUN,
  watch: WATCH,
});
/** What a pass would do, one pass, and passes one after another, for callers of the library. */
export const FLEET_PASS = { name: 'fleet apply', fields: APPLY };
export type FleetApplyRequest = RequestOf<typeof FLEET_PASS.fields>;
export const FLEET_PASSES = {
  name: 'fleet apply',
  fields: { ...APPLY, every: { ...WATCH, required: 'specify a time' } },
};

const ADDON = {
  addon: text('NAME', 'name of the add-on', {
    operand: true,
    required: 'specify an add-on, and the files of its fleet or the --kubeconfig of its hub',
  }),
};
const ORDER = {
  ...ADDON,
  files: paths('FILES', 'files and folders of the fleet, unless --kubeconfig names its hub', { operand: true }),
  ...STATE,
  kubeconfig: path('FILE', 'the hub that has the add-on, in the place of files'),
  context: text('NAME', 'context of that kubeconfig (default: its current one)', { with: 'kubeconfig' }),
};
export type FleetOrderRequest = RequestOf<typeof ORDER>;

export const FLEET_APPROVE = request('fleet approve', {
  ...ORDER,
  group: texts('GROUP', 'clusters of this group may get it; can be repeated'),
  unproven: texts('GROUP', 'other groups may follow this one although none of its clusters has it; can be repeated'),
  removals: count('N', 'up to N clusters may lose it at once'),
  deletions: flag('its content may delete most of its objects on a cluster'),
  downgrade: flag('clusters may get a lower version than the one that they have'),
});
export const FLEET_PAUSE = request('fleet pause', ORDER);
export const FLEET_RESUME = request('fleet resume', ORDER);
export const FLEET_RETRY = request('fleet retry', ORDER);
export const FLEET_ROLLBACK = request('fleet rollback', ORDER);

export const FLEET_REMOVE = request(
  'fleet remove',
  { ...ADDON, ...FILES, ...STATE, timeout: LOOK.timeout, ...DELIVER },
  { yes: flag('remove it', { short: 'y' }), dryRun: DRY_RUN },
);
export type FleetRemoveRequest = RequestOf<typeof FLEET_REMOVE.fields>;

export const FLEET_INIT = request('fleet init', {
  folder: path('DIR', 'the folder, in which none of the files may exist', {
    operand: true,
    required: 'specify a folder',
  }),
});
