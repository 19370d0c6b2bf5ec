/** Requests about channels, and the clusters that follow them. */
import * as v from 'valibot';
import { choice, duration, flag, path, places, port, text, texts } from '../core/field.ts';
import { request, type RequestOf } from '../core/request.ts';
import { ADDRESS } from './connection.ts';
import { ALL } from './repository.ts';

const required = 'specify a channel: a path, a URL, or s3://bucket/key';
const channels = places('LOCATION', 'paths or addresses of channels, indexes of kops or manifests', {
  operand: true,
  required,
});
const CHANNELS = {
  channels,
  compat: choice(
    ['native', 'kops', 'kops-2017'],
    'choose from an index of kops by the rules of curlew (native, the default), of kops, or of kops until June 2021 (kops-2017)',
    { value: 'RULES' },
  ),
  ...ADDRESS,
};
export type ChannelsRequest = RequestOf<typeof CHANNELS>;

export const CLUSTER = {
  kubeconfig: path('FILE', 'the cluster (default: KUBECONFIG, ~/.kube/config, or /etc/kubernetes/admin.conf)'),
  context: text('NAME', 'context of the kubeconfig (default: its current one)'),
};

export const HELM = { helm: path('FILE', 'helm 3 or 4, for add-ons that are charts (default: helm in PATH)') };
export const METRICS = {
  metrics: port('PORT', 'serve GET /metrics for Prometheus on this port of 127.0.0.1'),
};
const PRUNING = {
  pruneNamespaces: flag('also delete Namespaces that an add-on no longer has, with all that is in them'),
  pruneCrds: flag('also delete CustomResourceDefinitions, with all of their objects'),
};

export const CHANNEL_CHECK = request('channel check', CHANNELS, ALL);

const both = { operand: true, required: 'specify an add-on and a channel' } as const;

export const CHANNEL_EXPLAIN = request('channel explain', {
  addon: text('ADDON', 'name of the add-on', both),
  kubernetes: text('VERSION', 'version of Kubernetes to choose for (default: that of the cluster)'),
  ...CLUSTER,
  ...CHANNELS,
});
export const ALLOW_GAP = flag(
  'move an add-on right after a step of Kubernetes if no version fits both sides of the step, as kops does',
);

export const CHANNEL_PLAN = request('channel plan', {
  from: text('VERSION', 'version of Kubernetes to begin with (default: that of the cluster)'),
  to: text('VERSION', 'the version to upgrade to; v1.35.x is the newest one of this minor', {
    required: 'add --to v1.35.x',
  }),
  installed: texts(
    'NAME=VERSION',
    'an installed add-on; can be repeated (default: what is recorded in the cluster; with --from, what the channel has for it)',
  ),
  available: texts('VERSION', 'a version of Kubernetes that can be installed; can be repeated'),
  allowDowngrade: flag('allow steps to lower versions of add-ons'),
  allowGap: ALLOW_GAP,
  ...CLUSTER,
  ...CHANNELS,
});
/** The value of an option without a name; no add-on has it. */
const EVERY = '*';
const TAKE_OVER = {
  takeOver: {
    ...texts(
      'NAME',
      'also apply this add-on if it belongs to an installer, another channel or another program; without NAME: every one; can be repeated',
      { bare: EVERY },
    ),
    schema: v.union([v.boolean(), v.array(v.string())]),
    read: (names: readonly string[]): boolean | readonly string[] => (names.includes(EVERY) ? true : names),
  },
};

const APPLY = {
  allowDowngrade: flag('also apply lower versions than the installed ones'),
  ...TAKE_OVER,
  forceConflicts: flag('take fields of objects that other managers own'),
  ...PRUNING,
  timeout: duration('TIME', 'limit of the wait until an add-on is healthy (default: 5m)'),
  ...HELM,
  ...CLUSTER,
  ...CHANNELS,
};
const only = texts('NAME', 'only this add-on');
const ready = port('PORT', 'GET /ready on this port of 127.0.0.1 is 200 if the last pass succeeded, otherwise 503', {
  with: 'watch',
});
export const WATCH = duration('TIME', 'repeat the pass after this time, until it is stopped', { with: 'yes' });

export const YES = flag('apply the changes', { short: 'y' });
export const DRY_RUN = flag('only show what would change, as without --yes');

export const CHANNEL_APPLY = request('channel apply', APPLY, {
  yes: YES,
  dryRun: DRY_RUN,
  watch: WATCH,
  ready,
  addon: only,
});

/** One pass, for callers of the library. */
export const PASS = { name: 'apply channels', fields: { ...APPLY, addons: only } };
export type ChannelApplyRequest = RequestOf<typeof PASS.fields>;
export const PASSES = {
  name: 'watch channels',
  fields: { ...PASS.fields, every: { ...WATCH, required: 'specify a time' }, ready },
};
export const CHANNEL_STATUS = request('channel status', {
  addons: texts('ADDON', 'only these add-ons', { operand: true }),
  ...CLUSTER,
});
export const CHANNEL_REMOVE = request(
  'channel remove',
  {
    addon: text('ADDON', 'name of the add-on', {
      operand: true,
      required: 'specify one add-on',
      hint: 'curlew channel status lists them',
    }),
    namespace: text('NAME', 'namespace of its record, if several have one'),
    ...PRUNING,
    ...HELM,
    ...CLUSTER,
  },
  { yes: flag('delete the objects', { short: 'y' }), dryRun: DRY_RUN },
);
/** The same for callers of the library, who may limit the wait for what is deleted. */
export const REMOVAL = { name: 'channel remove', fields: { ...CHANNEL_REMOVE.fields, timeout: APPLY.timeout } };
export type ChannelRemoveRequest = RequestOf<typeof REMOVAL.fields>;
