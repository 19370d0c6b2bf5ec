/** Metrics in the text format of Prometheus. Pure. */

type Labels = Readonly<Record<string, string>>;
export type Sample = readonly [labels: Labels, value: number];

/** A metric with its help text; empty without samples. */
export function metric(
  type: 'gauge' | 'counter',
  name: string,
  help: string,
  samples: readonly Sample[] | number | undefined,
): string {
  const all: readonly Sample[] = typeof samples === 'number' ? [[{}, samples]] : (samples ?? []);
  if (all.length === 0) return '';
  const lines = all.map(([labels, value]) => {
    const pairs = Object.entries(labels).map(([key, text]) => `${key}="${escaped(text)}"`);
    return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}`;
  });
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('\n')}\n`;
}

/** Samples with one label, in the order of its values; at most 100. */
export function byLabel(label: string, counts: Iterable<readonly [string, number]>): readonly Sample[] {
  const sums = new Map<string, number>();
  for (const [value, count] of counts)
    if (sums.has(value) || sums.size < MAX_VALUES) sums.set(value, (sums.get(value) ?? 0) + count);
  return [...sums].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([value, count]) => [{ [label]: value }, count]);
}

const MAX_VALUES = 100;

function escaped(text: string): string {
  return text
    .replaceAll('\\', '\\\\')
    .replaceAll('"', String.raw`\"`)
    .replaceAll('\n', String.raw`\n`);
}
