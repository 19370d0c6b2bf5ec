/** The fields of a channel and their types. All are optional: what must be there, and what fits together, is in read-entry.ts. */
import * as v from 'valibot';
import { aMap, aText, fields, type Read } from '../../core/schema.ts';
import { DRIFTS, ENTRY_NAME, NODE_ROLES } from './channel.ts';
import { NAMESPACE } from './objects.ts';

/** The file name of a package. */
export const PACKAGE = /^[A-Za-z0-9][A-Za-z0-9._-]*\.tar\.gz$/;
/** A chart in a repository, which may have folders. */
const CHART_NAME = /^[A-Za-z0-9][A-Za-z0-9._/-]*$/;

const text = v.optional(aText);
const flag = v.optional(v.boolean('true or false'));

function like(pattern: RegExp, what: string) {
  return v.optional(v.pipe(aText, v.regex(pattern, what)));
}

function oneOf<const Words extends readonly string[]>(words: Words) {
  return v.optional(v.picklist(words, `one of ${words.join(', ')}`));
}

/** Items that are no maps are left out, so that the others keep their places. */
function list<Item extends v.GenericSchema>(item: Item) {
  return v.array(v.optional(item), 'a list');
}

const namespace = like(NAMESPACE, 'the name of a namespace');
const common = {
  ...v.entriesFromList(['name', 'version', 'kubernetesVersion', 'id', 'manifest'], text),
  namespace,
  needsRollingUpdate: oneOf(NODE_ROLES),
};

const kinds = list(
  fields({
    ...v.entriesFromList(['group', 'kind', 'labelSelector', 'fieldSelector'], text),
    namespaces: v.optional(list(aText)),
  }),
);

const kopsEntry = fields({
  ...common,
  selector: v.optional(v.pipe(aMap, v.record(v.string(), text))),
  manifestHash: text,
  needsPKI: flag,
  prune: v.optional(fields({ kinds: v.optional(kinds) })),
});

export const CHART_FIELDS = {
  repoURL: like(/^https?:\/\/[^\s/@]+(?:\/\S*)?$/, 'the URL of a Helm repository, without a login'),
  oci: like(/^oci:\/\/[^\s/@]+\/\S+$/, 'a reference such as oci://example.com/charts/web'),
  name: like(CHART_NAME, 'the name of a chart'),
  ...v.entriesFromList(['package', 'version', 'releaseName'], text),
  values: v.optional(aMap),
  namespace,
  ...v.entriesFromList(['wait', 'atomic'], flag),
};
const chart = fields(CHART_FIELDS);

const isAuto = v.literal('auto', '"auto" or a list of kinds');
const ownEntry = v.pipe(
  fields({
    ...common,
    package: like(PACKAGE, 'the file name of a package, such as weave-2.8.1.tar.gz'),
    chart: v.optional(chart),
    hash: like(/^(?:sha256:[0-9a-f]{64})?$/, 'sha256: and 64 hex digits in lower case'),
    requires: v.optional(list(fields({ name: like(ENTRY_NAME, 'the name of an add-on'), version: text }))),
    drift: oneOf(DRIFTS),
    prune: v.optional(v.lazy((prune) => (Array.isArray(prune) ? kinds : isAuto))),
  }),
  v.metadata({ required: ['name', 'version'] }),
);

function document<Entry extends v.GenericSchema>(entry: Entry) {
  return fields({
    ...v.entriesFromList(['apiVersion', 'kind'], v.optional(v.unknown())),
    metadata: v.optional(v.pipe(aMap, v.object({ name: text }))),
    spec: v.optional(fields({ addons: v.optional(list(entry)) })),
  });
}

/** The document by its kind: an index of kops, or curlew's own. */
export const DOCUMENTS = { Addons: document(kopsEntry), Channel: document(ownEntry) } as const;

export type ChartFields = Read<typeof chart>;
export type PruneKinds = Read<typeof kinds>;
export type EntryFields = Omit<Read<typeof kopsEntry> & Read<typeof ownEntry>, 'prune'> & {
  readonly prune?: 'auto' | PruneKinds | { readonly kinds?: PruneKinds | undefined } | undefined;
};
