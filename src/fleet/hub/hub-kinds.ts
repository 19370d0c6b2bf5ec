/** The kinds of a hub: their fields, the rules between fields, and how kubectl shows them. Pure. */
import * as v from 'valibot';
import { aMap, aText, byKey, fields, type Read } from '../../core/schema.ts';
import { PACKAGE } from '../../cluster/channel/channel-fields.ts';
import { STATES } from '../rollout/strategy.ts';
import {
  ADDON_FIELDS,
  CHART,
  CLUSTER_FIELDS,
  entryName,
  orderedRemoval,
  VALUES_FIELDS,
  VALUES_OBJECT,
  versionField,
} from '../schema.ts';
import { CREDENTIALS, TLS_CONFIG } from '../upstream/helm-chart-proxy.ts';
import {
  about,
  amount,
  clusterName,
  fleetAddonName,
  like,
  list,
  optional,
  optionalText,
  secretName,
} from '../upstream/kinds.ts';

/** A rule of the Common Expression Language that the API server checks, and what it says otherwise. */
function rules<Schema extends v.GenericSchema>(schema: Schema, ...all: readonly (readonly [string, string])[]) {
  const validations = all.map(([rule, message]) => ({ rule, message }));
  return v.pipe(schema, v.metadata({ 'x-kubernetes-validations': validations }));
}

/** RFC 3339, in seconds. */
const time = v.pipe(aText, v.metadata({ format: 'date-time' }));
const ACTIONS = ['Install', 'Remove'] as const;

const condition = fields({
  type: aText,
  status: v.picklist(['True', 'False', 'Unknown'], 'one of True, False, Unknown'),
  reason: aText,
  message: optionalText,
  lastTransitionTime: time,
  observedGeneration: v.exactOptional(amount),
});
export const conditions = v.exactOptional(
  v.pipe(list(condition), v.metadata({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] })),
);
export type Condition = Read<typeof condition>;

const digest = like(/^sha256:[0-9a-f]{64}$/, 'a digest: sha256: and 64 hex digits in lower case');
const address = like(/^https:\/\/[^\s/@]+\/\S+$/, 'an https address, without a login');
const { version, ...CHART_PLACE } = CHART;
/** A chart whose version is somewhere else. */
const CHART_FIELDS = {
  ...CHART_PLACE,
  package: optional('Address of its archive.', address),
  credentials: optional('Secret with logins for a download by the controller.', CREDENTIALS),
  tlsConfig: optional('Authorities for a download by the controller.', TLS_CONFIG),
};
const CHART_RULES = [
  [
    '[has(self.repoURL), has(self.oci), has(self.package)].filter(given, given).size() == 1',
    'write repoURL and name, or oci, or package',
  ],
  ['!has(self.repoURL) || has(self.name)', 'a chart of a repository needs name'],
] as const;
const SOURCE = {
  manifest: optional('Address of a manifest.', address),
  hash: optional('Digest of the manifest, or of the archive of the chart.', digest),
  chart: v.exactOptional(rules(fields({ ...CHART_FIELDS, version }), ...CHART_RULES)),
  package: v.exactOptional(fields({ name: fleetAddonName, version: aText, hash: digest })),
  template: optional(
    'Add-on of Open Cluster Management, whose objects are made from the templates among its values.',
    fleetAddonName,
  ),
};
const source = rules(
  fields({
    ...SOURCE,
    channel: optional(
      'The entry of a Channel that fits the Kubernetes of each cluster.',
      fields({
        name: fleetAddonName,
        addon: optional('Its name in the channel, if it is not that of this FleetAddon.', entryName),
      }),
    ),
  }),
  [
    '[has(self.manifest), has(self.chart), has(self.package), has(self.template), has(self.channel)].filter(given, given).size() == 1',
    'write exactly one of manifest, chart, package, template and channel',
  ],
  ['!has(self.hash) || !has(self.channel)', 'the hash of an entry is in its Channel'],
  ['!has(self.manifest) || has(self.hash)', 'a manifest needs its hash'],
  ['!has(self.hash) || !has(self.package)', 'the hash of a package is in package'],
  ['!has(self.chart) || !has(self.chart.package) || has(self.hash)', 'the archive of a chart needs its hash'],
);

const { rollout, clusterSelector, ...others } = ADDON_FIELDS;
const { dependsOn, mode, remove } = others;
/** Fields of a FleetAddon that say how it is removed. */
export const removalRules = v.object({ dependsOn, mode, remove, rollout });
export const selection = v.object({ clusterSelector });
const byDigest = v.exactOptional(fields({ ...VALUES_OBJECT, digest }));
/** The source of a ClusterAddon, to which the controller has added values of objects by their digest. */
export const resolvedSource = fields({
  ...SOURCE,
  valuesConfigMap: byDigest,
  valuesSecret: byDigest,
});

const SELECTS = [
  '(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)',
  'an empty selector would select every cluster, also those that come later',
] as const;
const VALUES = [
  "!has(self.matchExpressions) || self.matchExpressions.all(one, (one.operator in ['In', 'NotIn']) == (has(one.values) && size(one.values) > 0))",
  'In and NotIn need values, Exists and DoesNotExist take none',
] as const;
function named(list_: string, name: string, unless = ''): readonly [string, string] {
  return [
    `!has(self.${list_}) || self.${list_}.all(one, ${unless}(has(self.groups) && self.groups.exists(group, group.name == ${name})))`,
    `${list_} names a group that groups does not have`,
  ];
}
const addonSpec = rules(
  fields({
    source,
    clusterSelector: rules(clusterSelector, SELECTS, VALUES),
    ...others,
    rollout: v.exactOptional(
      rules(
        rollout.wrapped,
        [
          '!has(self.mandatoryDecisionGroups) || self.mandatoryDecisionGroups.all(one, has(one.groupName) || has(one.groupIndex))',
          'a mandatory group needs groupName or groupIndex',
        ],
        named('mandatoryDecisionGroups', 'one.groupName', '!has(one.groupName) || '),
        named('approval', 'one'),
      ),
    ),
  }),
  ...Object.values(VALUES_FIELDS).map(
    (one) =>
      [`!has(self.${one}) || has(self.source.chart) || has(self.source.channel)`, `${one} is for a chart`] as const,
  ),
);

const MAX_ENTRIES = 1000;
const entry = rules(
  fields({
    name: about('The add-on: entries of the same name are alternatives.', entryName),
    version: about(
      'The greatest version that fits is chosen; a chart or package has the same version.',
      like(/^v?\d+(?:\.\d+(?:\.\S+)?)?$/, 'a semantic version, such as 1.2.3'),
    ),
    kubernetesVersion: optional(
      'The versions of Kubernetes that it supports, such as >=1.30.0 <1.33.0; all by default.',
      aText,
    ),
    manifest: SOURCE.manifest,
    hash: optional('Digest of the manifest, the package, or the archive of the chart.', digest),
    chart: v.exactOptional(rules(fields(CHART_FIELDS), ...CHART_RULES)),
    package: optional('Name of a package.', like(PACKAGE, 'a name such as weave-2.8.1.tar.gz')),
  }),
  [
    '[has(self.manifest), has(self.chart), has(self.package)].filter(given, given).size() == 1',
    'write exactly one of manifest, chart and package',
  ],
  [
    'has(self.hash) || (has(self.chart) && !has(self.chart.package))',
    'a manifest, a package and the archive of a chart need their hash',
  ],
  [
    "!has(self.package) || self.package.endsWith('-' + self.version + '.tar.gz')",
    'a package is named by the version of its entry, as in NAME-VERSION.tar.gz',
  ],
);
const channelSpec = fields({
  addons: about(
    'Versions of add-ons, and the versions of Kubernetes that each supports.',
    v.pipe(list(entry), v.metadata({ maxItems: MAX_ENTRIES })),
  ),
});

const waiting = fields({ cluster: aText, reason: aText, message: aText, since: time });
const addonStatus = fields({
  observedGeneration: amount,
  revision: about('Hash of source and configuration.', aText),
  since: about('When the rollout of this revision began.', time),
  reached: about('How many stages are done.', amount),
  rolledBack: v.boolean('true or false'),
  soaking: optional(
    'Clusters on which what is new has not lasted minSuccessTime yet, with the time at which the controller first saw its success, if it has; at most 100, and 5 KiB of JSON.',
    byKey(aText),
  ),
  failed: optional(
    'Clusters that have failed. One that is deleted still counts until a newer order to retry.',
    fields({
      retry: time,
      clusters: about('With the group of each; at most 100, and 4 KiB of JSON.', byKey(aText)),
      more: optional('How many more have failed: those that are not seen any more count in the last group.', amount),
    }),
  ),
  retry: optional('The order to retry that counts, and when it was first seen.', fields({ at: time, seen: time })),
  removals: optional(
    'Removals under the approval of that time, and the clusters of the last of them.',
    fields({
      at: time,
      begun: amount,
      clusters: v.exactOptional(v.pipe(list(aText), v.metadata({ maxItems: 100 }))),
    }),
  ),
  removed: optional(
    'Removals without an approval within rollout.removalsWithin; those that have no room by name count by their time.',
    v.pipe(list(fields({ at: time, begun: amount, cluster: optionalText })), v.metadata({ maxItems: 100 })),
  ),
  stopped: optional('Why nothing new begins.', aText),
  wentBack: optional('Why it goes back to what was known as good.', aText),
  asks: optional(
    'What a person is asked to approve, or to know of an order that does not count or a field without effect.',
    aText,
  ),
  counts: about('Clusters by state.', byKey(amount)),
  reasons: about('Clusters that wait, by reason.', byKey(amount)),
  batch: about(
    'The first clusters with a place in the batch; at most 100, and fewer where 12 KiB of status have no room.',
    list(aText),
  ),
  waiting: about(
    'The first clusters that wait; at most 20, and 8 KiB of JSON, within 12 KiB of status.',
    list(waiting),
  ),
  moreWaiting: optional('How many more wait.', amount),
  conditions,
});

const clusterSpec = fields({
  ...CLUSTER_FIELDS,
  access: optional(
    'How the controller reaches it, to deliver add-ons itself; without it, an agent does.',
    fields({
      kubeconfigSecret: about(
        'Secret next to this Cluster, such as NAME-kubeconfig of Cluster API; its key value has a kubeconfig.',
        secretName,
      ),
    }),
  ),
});
const clusterStatus = fields({
  facts: v.exactOptional(
    fields({
      version: optional('Version of Kubernetes.', versionField),
      nodes: v.exactOptional(amount),
      networks: v.exactOptional(aMap),
      arch: optionalText,
      agentVersion: optionalText,
      server: optionalText,
    }),
  ),
  lastSeen: optional('When it answered last.', time),
  conditions,
});

const content = {
  source: about('What is installed, by digest.', aMap),
  version: optionalText,
  values: aMap,
  specHash: about('Hash of source and values.', aText),
  inputs: optional('Hash of what the template saw.', aText),
};
const clusterAddonSpec = rules(
  fields({
    hub: optional('The hub that wrote it: an agent obeys one.', aText),
    revision: about('Grows with each change.', v.pipe(amount, v.minValue(1, 'a number from 1'))),
    action: v.picklist(ACTIONS, `one of ${ACTIONS.join(', ')}`),
    identity: about('What cannot exist twice in a cluster.', aText),
    ...content,
    startedAt: about('When this revision was written.', time),
    knownGood: optional('What was healthy last, to go back to.', fields(content)),
    remove: v.exactOptional(orderedRemoval),
    prune: optional(
      'What becomes of objects that its content no longer has: they stay, or all are deleted, also most of them.',
      v.picklist(['None', 'All'], 'one of None, All'),
    ),
    config: optional('Values of this cluster alone: the one field that people write.', aMap),
  }),
  ['self.revision >= oldSelf.revision', 'revision only grows'],
  [
    'self.revision > oldSelf.revision || (self.specHash == oldSelf.specHash && self.action == oldSelf.action)',
    'other content or another action needs a new revision',
  ],
  ["self.action == 'Remove' || !has(self.remove)", 'remove is only for action: Remove'],
);
const clusterAddonStatus = fields({
  applied: about('What this state is about.', fields({ revision: amount, hash: aText })),
  state: v.picklist(STATES, `one of ${STATES.join(', ')}`),
  reason: optionalText,
  message: optionalText,
  since: time,
  health: optionalText,
  orphans: optional('Objects that a removal or an earlier content has left.', list(aText)),
  conditions,
});

const REASON = '.status.conditions[?(@.type=="Available")].reason';
const AVAILABLE = '.status.conditions[?(@.type=="Available")].status';

/** By kind; columns as name, type and JSON path. */
export const HUB_KINDS = {
  Cluster: {
    plural: 'clusters',
    short: 'fcl',
    scope: 'Namespaced',
    about: 'A cluster of a fleet, in the namespace fleet-NAME.',
    name: clusterName,
    spec: clusterSpec,
    status: clusterStatus,
    columns: [
      ['Version', 'string', '.status.facts.version'],
      ['Available', 'string', AVAILABLE],
      ['Reason', 'string', REASON],
      ['Seen', 'date', '.status.lastSeen'],
    ],
  },
  FleetAddon: {
    plural: 'fleetaddons',
    short: 'fad',
    scope: 'Cluster',
    about: 'An add-on, the clusters that get it, and how it spreads over them.',
    name: fleetAddonName,
    spec: addonSpec,
    status: addonStatus,
    columns: [
      ['Available', 'string', AVAILABLE],
      ['Reason', 'string', REASON],
      ['Done', 'integer', '.status.counts.Succeeded'],
      ['Rolling', 'integer', '.status.counts.Progressing'],
      ['Failed', 'integer', '.status.counts.Failed'],
      ['Stopped', 'string', '.status.stopped'],
    ],
  },
  Channel: {
    plural: 'channels',
    short: 'fch',
    scope: 'Cluster',
    about: 'Which version of each add-on fits which Kubernetes. FleetAddons name it.',
    name: fleetAddonName,
    spec: channelSpec,
    status: undefined,
    columns: [],
  },
  ClusterAddon: {
    plural: 'clusteraddons',
    short: 'cad',
    scope: 'Namespaced',
    about: 'One add-on on one cluster. The controller writes it, and the agent of the cluster its status.',
    name: fleetAddonName,
    spec: clusterAddonSpec,
    status: clusterAddonStatus,
    columns: [
      ['Version', 'string', '.spec.version'],
      ['Revision', 'integer', '.spec.revision'],
      ['Applied', 'integer', '.status.applied.revision'],
      ['Action', 'string', '.spec.action'],
      ['State', 'string', '.status.state'],
      ['Reason', 'string', '.status.reason'],
      ['Since', 'date', '.status.since'],
    ],
  },
} as const;

export type HubKind = keyof typeof HUB_KINDS;
