/** `prune` of an entry -> data. Pure. */
import type { Channel, Entry, PruneKind } from './channel.ts';
import type { Fields, Findings } from './fields.ts';
import { NAMESPACE } from './objects.ts';
import { isBare, isNowhere, parseSelector } from './prune.ts';

type Context = Pick<Channel, 'kind' | 'compat'> & Pick<Entry, 'selector'>;

export function readPrune(fields: Fields, context: Context, found: Findings): Entry['prune'] {
  if (!fields.has('prune')) return undefined;
  const read = (item: Fields): readonly PruneKind[] => readKind(item, context, found);
  if (context.kind === 'Addons') return fields.map('prune')?.recognize(['kinds']).maps('kinds').flatMap(read);
  if (fields.get('prune') === 'auto') return 'auto';
  if (!Array.isArray(fields.get('prune'))) return fields.wrong('prune', '"auto" or a list of kinds');
  return fields.maps('prune').flatMap(read);
}

/** A kind without selector of its own has that of its entry. */
function readKind(item: Fields, { compat, selector }: Context, found: Findings): readonly PruneKind[] {
  const fields = item.recognize(['group', 'kind', 'namespaces', 'labelSelector', 'fieldSelector']);
  const kind = fields.text('kind') ?? '';
  if (kind === '') {
    fields.wrong('kind', 'a kind of objects, such as ConfigMap');
    return [];
  }
  const given = (fields.text('labelSelector') ?? '').trim();
  if (parseSelector(given) === undefined) {
    found.mistake(
      'value',
      fields.path('labelSelector'),
      'labelSelector cannot be read',
      'write it as "app=web,tier!=db"',
    );
  }
  const ownLabels = Object.entries(selector).map((label) => label.join('='));
  const read = {
    group: fields.text('group') ?? '',
    kind,
    namespaces: fields.texts('namespaces').filter((name) => name !== ''),
    labelSelector: given === '' ? ownLabels.join(',') : given,
    fieldSelector: fields.text('fieldSelector') ?? '',
  };
  const wrong = read.namespaces.find((name) => !NAMESPACE.test(name));
  if (wrong !== undefined)
    found.mistake('value', fields.path('namespaces'), `"${wrong.slice(0, 80)}" cannot be the name of a namespace`);
  if (isNowhere(read)) {
    const message = `prune selects nothing: a ${kind} is in no namespace`;
    found.mistake('prune', fields.path('namespaces'), message, 'write labelSelector instead of namespaces');
  }
  if (isBare(read)) {
    const severity = compat === 'native' ? 'error' : 'warning';
    const message = `prune selects every ${kind} of the cluster, not only those of the add-on`;
    found.add(severity, 'prune', fields.path('kind'), message, 'write labelSelector or namespaces');
  }
  return [read];
}
