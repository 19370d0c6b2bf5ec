/** `prune` of an entry -> data. Pure. */
import type { Path } from '../formats/yaml/yaml.ts';
import type { Channel, Entry, PruneKind } from './channel.ts';
import { pathsOf, type Findings } from './findings.ts';
import { NAMESPACE } from './objects.ts';
import { isBare, isNowhere, parseSelector } from './prune.ts';
import type { EntryFields, PruneKinds } from './schema.ts';

type Context = Pick<Channel, 'compat'> & Pick<Entry, 'selector'>;

export function readPrune(prune: EntryFields['prune'], path: Path, context: Context, found: Findings): Entry['prune'] {
  if (prune === undefined || prune === 'auto') return prune;
  const [kinds, at] = 'length' in prune ? [prune, path] : [prune.kinds ?? [], [...path, 'kinds']];
  return kinds.flatMap((kind, index) => (kind === undefined ? [] : readKind(kind, [...at, index], context, found)));
}

/** A kind without selector of its own has that of its entry. */
function readKind(
  fields: NonNullable<PruneKinds[number]>,
  path: Path,
  { compat, selector }: Context,
  found: Findings,
): readonly PruneKind[] {
  const { kind = '', group = '', namespaces = [], labelSelector = '', fieldSelector = '' } = fields;
  const at = pathsOf(fields, path);
  if (kind === '') return found.wrong('kind', at('kind'), 'a kind of objects, such as ConfigMap') ?? [];
  const given = labelSelector.trim();
  if (parseSelector(given) === undefined) {
    found.mistake('value', at('labelSelector'), 'labelSelector cannot be read', 'write it as "app=web,tier!=db"');
  }
  const ownLabels = Object.entries(selector).map((label) => label.join('='));
  const read = {
    group,
    kind,
    namespaces: namespaces.flatMap((name = '') => (name === '' ? [] : [name])),
    labelSelector: given === '' ? ownLabels.join(',') : given,
    fieldSelector,
  };
  const wrong = read.namespaces.find((name) => !NAMESPACE.test(name));
  if (wrong !== undefined)
    found.mistake('value', at('namespaces'), `"${wrong.slice(0, 80)}" cannot be the name of a namespace`);
  if (isNowhere(read)) {
    const message = `prune selects nothing: a ${kind} is in no namespace`;
    found.mistake('prune', at('namespaces'), message, 'write labelSelector instead of namespaces');
  }
  if (isBare(read)) {
    const severity = compat === 'native' ? 'error' : 'warning';
    const message = `prune selects every ${kind} of the cluster, not only those of the add-on`;
    found.add(severity, 'prune', at('kind'), message, 'write labelSelector or namespaces');
  }
  return [read];
}
