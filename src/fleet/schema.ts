/** The fields of the documents of a fleet that no hub keeps, and their types. What fits together is in check.ts. Pure. */
import * as v from 'valibot';
import { CHANNEL_API_VERSION, DRIFTS, ENTRY_NAME } from '../channel/channel.ts';
import { CHART_FIELDS } from '../channel/schema.ts';
import { byKey, type Read } from '../core/schema.ts';
import {
  addonName,
  clusterName,
  aMap,
  aText,
  fields,
  labels,
  like,
  list,
  selector,
  size,
  wholeNumber,
} from './upstream/kinds.ts';

const text = v.exactOptional(aText);

function oneOf<const Words extends readonly string[]>(words: Words) {
  return v.exactOptional(v.picklist(words, `one of ${words.join(', ')}`));
}

const values = aMap;

const duration = like(/^(?:\d{1,9}[hms]|None)$/, 'a time such as 90s, 10m or 2h');
const windows = list(
  fields({
    cron: like(/^\S+(?: +\S+){4}$/, 'five fields of numbers, such as 0 22 * * 1-5'),
    duration,
    timeZone: text,
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

const version = like(/^v?\d+\.\d+\.\d+\S*$/, 'a version such as v1.31.2');
/** It is an argument of ssh, which would take one that begins with "-" as an option. */
const host = like(/^[A-Za-z0-9[][^\s]*$/, 'a name or an address of a host');

const machine = fields({
  name: like(/^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/, 'the name of a node'),
  role: v.picklist(['control-plane', 'worker'], 'one of control-plane, worker'),
  address: v.exactOptional(host),
  ssh: v.exactOptional(
    fields({
      user: v.exactOptional(host),
      port: v.exactOptional(
        v.pipe(v.number('a number'), v.integer('a whole number'), v.minValue(1, 'a number from 1')),
      ),
      hostKey: aText,
      via: v.exactOptional(host),
    }),
  ),
  labels: v.exactOptional(labels),
  taints: v.exactOptional(
    list(
      fields({
        key: aText,
        value: text,
        effect: v.picklist(
          ['NoSchedule', 'PreferNoSchedule', 'NoExecute'],
          'one of NoSchedule, PreferNoSchedule, NoExecute',
        ),
      }),
    ),
  ),
  kubeletVersion: v.exactOptional(version),
  containerRuntime: v.exactOptional(fields({ name: aText, version: aText })),
  update: oneOf(['Auto', 'InPlaceOnly', 'Replace']),
  drain: v.exactOptional(fields({ timeout: duration })),
});

const cluster = document(
  'Cluster',
  clusterName,
  fields({
    kubernetes: v.exactOptional(fields({ version })),
    paused: v.exactOptional(v.boolean('true or false')),
    windows: v.exactOptional(windows),
    networks: v.exactOptional(fields({ pods: text, services: text, domain: text })),
    access: fields({ kubeconfig: aText }),
    machines: v.exactOptional(list(machine)),
  }),
);

const { repoURL, oci, name, releaseName, namespace } = CHART_FIELDS;
const source = fields({
  manifest: text,
  chart: v.exactOptional(fields({ repoURL, oci, name, version: aText, releaseName, namespace })),
  channel: v.exactOptional(fields({ name: aText, addon: v.exactOptional(like(ENTRY_NAME, 'the name of an add-on')) })),
});

const rollout = fields({
  type: oneOf(['All', 'Progressive', 'ProgressivePerGroup']),
  groups: v.exactOptional(list(fields({ name: aText, selector, size: v.exactOptional(size) }))),
  groupSize: v.exactOptional(size),
  mandatoryDecisionGroups: v.exactOptional(list(fields({ groupName: text, groupIndex: v.exactOptional(wholeNumber) }))),
  maxConcurrency: v.exactOptional(size),
  minSuccessTime: v.exactOptional(duration),
  progressDeadline: v.exactOptional(duration),
  maxFailures: v.exactOptional(size),
  onFailure: oneOf(['Stop', 'Rollback']),
  approval: v.exactOptional(list(aText)),
  windows: v.exactOptional(windows),
  maxRemovals: v.exactOptional(size),
});

const fleetAddon = document(
  'FleetAddon',
  addonName,
  fields({
    source,
    clusterSelector: selector,
    valuesTemplate: text,
    config: v.exactOptional(
      fields({ default: v.exactOptional(values), groups: v.exactOptional(list(fields({ selector, values }))) }),
    ),
    dependsOn: v.exactOptional(list(aText)),
    mode: oneOf(['Continuous', 'InstallOnce']),
    adopt: v.exactOptional(v.boolean('true or false')),
    drift: oneOf(DRIFTS),
    rollout: v.exactOptional(rollout),
    remove: v.exactOptional(
      fields({ onFailure: oneOf(['Block', 'Skip', 'Orphan']), timeout: v.exactOptional(duration) }),
    ),
  }),
);

export const KINDS = { Cluster: cluster, FleetAddon: fleetAddon } as const;

export type ClusterFields = Read<typeof cluster>;
export type AddonFields = Read<typeof fleetAddon>;
