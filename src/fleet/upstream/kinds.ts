/** Parts that documents of a fleet have in common with other kinds of Kubernetes. */
import * as v from 'valibot';
import { aMap, aText, byKey, fields } from '../../core/schema.ts';
import type { Selector } from '../rollout/groups.ts';

export const CLUSTER_NAME = /^[a-z0-9](?:[a-z0-9-]{0,55}[a-z0-9])?$/;
/** Also that of a Helm release. */
const ADDON_NAME = /^[a-z0-9](?:[a-z0-9-]{0,51}[a-z0-9])?$/;
export const DNS_NAME = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/;
const LABEL_KEY = /^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
const LABEL_VALUE = /^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/;

export const optionalText = v.exactOptional(aText);
export const anything = v.exactOptional(v.unknown());

export function like(pattern: RegExp, what: string) {
  return v.pipe(aText, v.regex(pattern, what));
}

/** The schema with what it is for, which editors and `kubectl explain` show. */
export function about<Schema extends v.GenericSchema>(description: string, schema: Schema) {
  return v.pipe(schema, v.metadata({ description }));
}

/** A field that may be left out, with what it is for. */
export function optional<Schema extends v.GenericSchema>(description: string, schema: Schema) {
  return v.exactOptional(about(description, schema));
}

export const clusterName = like(CLUSTER_NAME, 'at most 57 lower-case letters, digits and "-"');
export const fleetAddonName = like(ADDON_NAME, 'at most 53 lower-case letters, digits and "-"');

export const dnsName = like(DNS_NAME, 'lower-case letters, digits, "." and "-"');
export const secretName = like(DNS_NAME, 'the name of a Secret');

/** A map of another program, which may have other fields, too. */
export function loose<Entries extends v.ObjectEntries>(entries: Entries) {
  return v.pipe(aMap, v.looseObject(entries));
}

export function list<Item extends v.GenericSchema>(item: Item) {
  return v.array(item, 'a list');
}

const labelKey = like(LABEL_KEY, 'the key of a label');
const labelValue = like(LABEL_VALUE, 'the value of a label, in quotes if it is a number');
export const labels = v.pipe(
  byKey(labelValue),
  v.check((map) => Object.keys(map).every((key) => LABEL_KEY.test(key)), 'a map whose keys are keys of labels'),
);
/** A selector may name each cluster of a fleet. */
export const MAX_CLUSTERS = 5000;
const OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist'] as const;
export const selector = fields({
  matchLabels: v.exactOptional(labels),
  matchExpressions: v.exactOptional(
    list(
      fields({
        key: labelKey,
        operator: v.picklist(OPERATORS, `one of ${OPERATORS.join(', ')}`),
        values: v.exactOptional(v.pipe(list(labelValue), v.metadata({ maxItems: MAX_CLUSTERS }))),
      }),
    ),
  ),
});

export const amount = v.pipe(v.number('a number'), v.integer('a whole number'), v.minValue(0, 'a number from 0'));
const SIZE = 'a number such as 3, or a percentage such as 25%';
export const part = v.union([amount, like(/^\d{1,3}%$/, SIZE)], SIZE);

/** Label of each cluster of a fleet, whose value is its name: what other kinds select in other ways selects names. */
export const NAME_LABEL = 'fleet.curlew.dev/cluster';

/** Selects the clusters with these names, and no cluster if there are none. */
export function anyOf(names: readonly string[]): Selector {
  if (names.length > 0) return { matchExpressions: [{ key: NAME_LABEL, operator: 'In', values: names }] };
  const none = (['Exists', 'DoesNotExist'] as const).map((operator) => ({ key: NAME_LABEL, operator }));
  return { matchExpressions: none };
}

/** A document of another program, whose metadata may have anything else. */
export function foreign<Name extends v.GenericSchema<unknown, string>, Spec extends v.ObjectEntries>(
  name: Name,
  spec: Spec,
) {
  const annotations = v.exactOptional(byKey(aText));
  return fields({
    apiVersion: aText,
    kind: aText,
    metadata: loose({ name, namespace: optionalText, labels: v.exactOptional(labels), annotations }),
    spec: v.exactOptional(fields(spec), {}),
    status: v.exactOptional(aMap),
  });
}
