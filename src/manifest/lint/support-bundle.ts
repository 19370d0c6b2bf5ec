/** Specs in the text of a Secret or a ConfigMap, where the support-bundle program finds them. Pure. */
import { isMap, isScalar, type Scalar, type YAMLMap } from 'yaml';
import type { Remark, Spot } from './spot.ts';
import { textUnder } from './yaml-images.ts';
import type { YamlDocument } from './yaml-text.ts';

/** A text nested in another text, and the mapping of its ranges to the outer text. */
export interface NestedText {
  readonly text: string;
  readonly outward: (spot: Spot) => Spot;
}

const SPEC_KEYS: ReadonlySet<string> = new Set(['support-bundle-spec', 'preflight.yaml', 'host-preflight.yaml']);
const LABELS = ['troubleshoot.sh/kind', 'troubleshoot.io/kind'];
const MAX_LENGTH = 1024 * 1024;

function mapAt(map: YAMLMap, name: string): YAMLMap | undefined {
  const value = map.items.find(({ key }) => isScalar(key) && key.value === name)?.value;
  return isMap(value) ? value : undefined;
}

/** The specs in a document, and remarks about how they are stored. */
export function nestedSpecs(
  { tree, base }: YamlDocument,
  original: string,
): { readonly specs: readonly NestedText[]; readonly remarks: readonly Remark[] } {
  const nothing = { specs: [], remarks: [] };
  if (!isMap(tree.contents)) return nothing;
  const kind = textUnder(tree.contents, 'kind')?.text;
  if (kind !== 'Secret' && kind !== 'ConfigMap') return nothing;
  const data = mapAt(tree.contents, kind === 'Secret' ? 'stringData' : 'data');
  const specs: NestedText[] = [];
  const remarks: Remark[] = [];
  for (const { key, value } of data?.items ?? []) {
    if (!isScalar(key) || !SPEC_KEYS.has(String(key.value)) || !isScalar(value)) continue;
    if (typeof value.value !== 'string' || value.value.length > MAX_LENGTH || !value.range) continue;
    specs.push(nestedText(value, base, original));
    if (key.value !== 'support-bundle-spec' || isLabelled(tree.contents) || !key.range) continue;
    remarks.push({
      code: 'troubleshoot/label',
      from: base + key.range[0],
      to: base + key.range[1],
      message: `this ${kind} is not found without its label`,
      hint: 'metadata.labels: troubleshoot.sh/kind: support-bundle',
    });
  }
  return { specs, remarks };
}

function isLabelled(map: YAMLMap): boolean {
  const metadata = mapAt(map, 'metadata');
  const labels = metadata === undefined ? undefined : mapAt(metadata, 'labels');
  return labels !== undefined && LABELS.some((label) => textUnder(labels, label)?.text === 'support-bundle');
}

/** A literal block keeps its lines, so places inside it can be mapped; other forms can only be pointed at as a whole. */
function nestedText(scalar: Scalar, base: number, original: string): NestedText {
  const [from, to] = [base + (scalar.range?.[0] ?? 0), base + (scalar.range?.[1] ?? 1)];
  const header = original.indexOf('\n', from);
  const isLiteral = scalar.type === 'BLOCK_LITERAL' && header !== -1 && !/\d/.test(original.slice(from, header));
  if (!isLiteral) return { text: String(scalar.value), outward: () => ({ from, to: from + 1 }) };
  const body = original.slice(header + 1, to);
  const indent = /^( *)[^ \n]/m.exec(body)?.[1]?.length ?? 0;
  const lines = body.split('\n').map((line) => ({ full: line.length, text: line.slice(indent) }));
  const starts: { readonly inner: number; readonly outer: number }[] = [];
  let [inner, outer] = [0, header + 1];
  for (const { full, text } of lines) {
    starts.push({ inner, outer: outer + full - text.length });
    inner += text.length + 1;
    outer += full + 1;
  }
  const outwards = (offset: number): number => {
    const line = starts.findLast((start) => start.inner <= offset) ?? { inner: 0, outer: header + 1 };
    return line.outer + offset - line.inner;
  };
  return {
    text: lines.map(({ text }) => text).join('\n'),
    outward: (spot) => ({ from: outwards(spot.from), to: Math.max(outwards(spot.from) + 1, outwards(spot.to)) }),
  };
}
