/** The fields of the documents of a fleet in a folder, and those that a hub has, too. What fits together is in check.ts. Pure. */
import * as v from 'valibot';
import { CHANNEL_API_VERSION, DRIFTS, ENTRY_NAME } from '../cluster/channel/channel.ts';
import { CHART_FIELDS } from '../cluster/channel/channel-fields.ts';
import { HOST_KEY, SSH_WORD } from '../core/ssh-word.ts';
import { aMap, aText, byKey, fields, type Read } from '../core/schema.ts';
import { TYPES } from './rollout/strategy.ts';
import {
  about,
  fleetAddonName,
  clusterName,
  DNS_NAME,
  dnsName,
  labels,
  like,
  list,
  optional,
  MAX_CLUSTERS,
  selector,
  part,
  amount,
  optionalText,
} from './upstream/kinds.ts';

function oneOf<const Words extends readonly string[]>(words: Words, what: string) {
  return optional(what, v.picklist(words, `one of ${words.join(', ')}`));
}

const values = aMap;

const TIME = 'a time such as 90s, 10m or 2h';
const duration = like(/^(?:\d{1,9}[hms]|None)$/, TIME);
const windows = list(
  fields({
    cron: about(
      'Minute, hour, day, month and weekday at which it opens.',
      like(/^\S+(?: +\S+){4}$/, 'five fields of numbers, such as 0 22 * * 1-5'),
    ),
    duration: about('How long it stays open.', duration),
    timeZone: optional('Such as Europe/Paris; UTC by default.', aText),
  }),
);

function document<Kind extends string, Name extends v.GenericSchema, Spec extends v.GenericSchema>(
  kind: Kind,
  name: Name,
  spec: Spec,
) {
  const annotations = v.exactOptional(byKey(aText));
  return fields({
    apiVersion: v.literal(CHANNEL_API_VERSION, CHANNEL_API_VERSION),
    kind: v.literal(kind, kind),
    metadata: fields({ name, labels: v.exactOptional(labels), annotations }),
    spec,
  });
}

export const versionField = like(/^v?\d+\.\d+\.\d+\S*$/, 'a version such as v1.37.2');
const host = like(SSH_WORD, 'a name or an address of a host');

export const MACHINE_NAME = DNS_NAME;

/** How a machine is reached. */
export const REACH = {
  address: v.exactOptional(host),
  ssh: v.exactOptional(
    fields({
      user: v.exactOptional(like(SSH_WORD, 'the name of a user')),
      port: v.exactOptional(
        v.pipe(
          v.number('a number'),
          v.integer('a whole number'),
          v.minValue(1, 'a number from 1'),
          v.maxValue(65_535, 'a number up to 65535'),
        ),
      ),
      hostKey: like(HOST_KEY, 'SHA256:… or a type with a key'),
      via: v.exactOptional(like(SSH_WORD, 'a host to connect through, as [USER@]HOST[:PORT]')),
    }),
  ),
};

const machine = fields({
  name: like(MACHINE_NAME, 'the name of a node'),
  role: v.picklist(['control-plane', 'worker'], 'one of control-plane, worker'),
  ...REACH,
  labels: v.exactOptional(labels),
  taints: v.exactOptional(
    list(
      fields({
        key: aText,
        value: optionalText,
        effect: v.picklist(
          ['NoSchedule', 'PreferNoSchedule', 'NoExecute'],
          'one of NoSchedule, PreferNoSchedule, NoExecute',
        ),
      }),
    ),
  ),
  kubeletVersion: v.exactOptional(versionField),
  update: oneOf(['Auto', 'InPlaceOnly', 'Replace'], 'How it gets what an update changes.'),
  drain: v.exactOptional(fields({ timeout: duration })),
  provider: v.exactOptional(
    fields({
      exec: about(
        "Its name in the operator's configuration, which has the path of its program.",
        like(/^[a-z0-9][a-z0-9-]{0,63}$/, 'the name of a provider'),
      ),
      config: optional('Only the provider reads it.', aMap),
    }),
  ),
});

export const CLUSTER_FIELDS = {
  kubernetes: v.exactOptional(fields({ version: about('Assumed while the cluster does not answer.', versionField) })),
  paused: optional('If true, no change begins on this cluster.', v.boolean('true or false')),
  windows: optional('When changes may begin; at any time by default.', windows),
  networks: optional('For templates.', fields({ pods: optionalText, services: optionalText, domain: optionalText })),
};

const cluster = document(
  'Cluster',
  clusterName,
  fields({
    ...CLUSTER_FIELDS,
    access: fields({ kubeconfig: about('Path of a kubeconfig, from the folder of this file.', aText) }),
    installer: optional('Settings of add-ons, by name, over those of the installer spec of the bundle.', aMap),
    machines: v.exactOptional(list(machine)),
  }),
);

const { repoURL, oci, name, releaseName, namespace } = CHART_FIELDS;
export const CHART = {
  repoURL,
  oci,
  name,
  version: optional('Without it, a cluster keeps the newest one of its first day.', aText),
  releaseName,
  namespace,
  wait: optional('If true, helm waits until it is ready.', v.boolean('true or false')),
  atomic: optional('If true, helm takes back what fails.', v.boolean('true or false')),
};
const chart = fields(CHART);
export const entryName = like(ENTRY_NAME, 'the name of an add-on');
const source = fields({
  manifest: optionalText,
  chart: v.exactOptional(chart),
  channel: v.exactOptional(fields({ name: aText, addon: v.exactOptional(entryName) })),
});

const ON_FAILURE = ['Block', 'Skip', 'Orphan'] as const;
const timeout = optional('How long a removal may take; 30m by default.', duration);
const removal = fields({
  onFailure: oneOf(ON_FAILURE, 'What becomes of a removal that fails: it blocks, or the record goes.'),
  onUnselect: oneOf(
    ['Delete', 'Leave'],
    'What becomes of it on a cluster that it no longer selects: it is removed (default), or stays, and only its record goes.',
  ),
  timeout,
});
/** How a ClusterAddon is removed. */
export const orderedRemoval = fields({
  onFailure: oneOf(
    [...ON_FAILURE, 'Leave'],
    'What becomes of a removal that fails: it blocks, or the record goes; Leave removes nothing, and only the record goes.',
  ),
  timeout,
});

const rollout = fields({
  type: oneOf(TYPES, 'All clusters at once (default), a window of them, or group by group.'),
  groups: optional(
    'The stages of the rollout; clusters that no group selects come last.',
    list(fields({ name: aText, selector, size: v.exactOptional(part) })),
  ),
  groupSize: optional('Cuts what has no group into groups of this size.', part),
  mandatoryDecisionGroups: optional(
    'Groups that come first, one after the other; no cluster in them may fail.',
    list(fields({ groupName: optionalText, groupIndex: v.exactOptional(amount) })),
  ),
  maxConcurrency: optional('Most clusters that change at the same time.', part),
  minSuccessTime: optional('How long a cluster must be healthy before the next one begins.', duration),
  progressDeadline: optional('How long one cluster may take; 30m by default.', duration),
  maxFailures: optional(
    'Failures beyond which nothing new begins. 1 by default; of one or two clusters, and in mandatory groups, 0.',
    part,
  ),
  onFailure: oneOf(['Stop', 'Rollback'], 'After too many failures, nothing new begins (default), or all goes back.'),
  approval: optional('Groups that begin only after a person has approved them.', list(aText)),
  windows: optional('When changes may begin; at any time by default.', windows),
  maxRemovals: optional('Most removals without an approval; 10 % of the clusters, and at least 1, by default.', part),
  removalsWithin: optional(
    'Time within which removals count together, also those that are over; 24h by default.',
    like(/^\d{1,9}[hms]$/, TIME),
  ),
});

export const VALUES_OBJECT = {
  name: dnsName,
  key: optional(
    'Which text has them as YAML; values.yaml by default.',
    like(/^[-._A-Za-z0-9]{1,253}$/, 'a key of its data'),
  ),
};
/** Fields of values that are in an object of a hub, by its kind. Those of a later one win. */
export const VALUES_FIELDS = { ConfigMap: 'valuesConfigMap', Secret: 'valuesSecret' } as const;
function valuesFrom(kind: keyof typeof VALUES_FIELDS) {
  const perCluster = optional(
    'If true, each cluster has its own, under CLUSTER.values.yaml (CLUSTER.KEY).',
    v.boolean('true or false'),
  );
  const what = `More values for a chart, from a ${kind} of a hub in the namespace curlew-system.`;
  return optional(what, fields({ ...VALUES_OBJECT, perCluster }));
}
export const ADDON_FIELDS = {
  clusterSelector: about('The clusters that get it, by their labels; not empty.', selector),
  valuesTemplate: optional(
    'Go template of more values, from .Cluster and .Addon.',
    v.pipe(aText, v.metadata({ maxLength: 16384 })),
  ),
  config: optional(
    'Values: the default, then those of each group that selects the cluster.',
    fields({
      default: v.exactOptional(values),
      groups: v.exactOptional(v.pipe(list(fields({ selector, values })), v.metadata({ maxItems: MAX_CLUSTERS }))),
    }),
  ),
  valuesConfigMap: valuesFrom('ConfigMap'),
  valuesSecret: valuesFrom('Secret'),
  dependsOn: optional('Add-ons that must be ready on a cluster before.', list(aText)),
  mode: oneOf(['Continuous', 'InstallOnce'], 'Follows changes (default), or is left alone once it is installed.'),
  adopt: optional('If true, takes over what another owner has installed.', v.boolean('true or false')),
  drift: oneOf(DRIFTS, 'What a change does with fields that others have changed.'),
  prune: oneOf(
    ['Auto', 'None'],
    'What becomes of objects that its content no longer has: they are deleted (default), or stay.',
  ),
  rollout: v.exactOptional(rollout),
  remove: optional('How it is removed from clusters.', removal),
};

const fleetAddon = document('FleetAddon', fleetAddonName, fields({ source, ...ADDON_FIELDS }));

export const KINDS = { Cluster: cluster, FleetAddon: fleetAddon } as const;

export type ClusterFields = Read<typeof cluster>;
export type AddonFields = Read<typeof fleetAddon>;
