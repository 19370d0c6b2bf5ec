/** All that is to be said of one YAML text wherever it lies; the same text in many versions is judged once. */
import { nestedSpecs } from './support-bundle.ts';
import type { Remark } from './spot.ts';
import { specKindOf, type SpecKind } from './troubleshoot-schema.ts';
import { collectImages, kindOf, type ImageRewrite, type ImageUse, type NamedImages } from './yaml-images.ts';
import { eachDocument, type YamlDocument } from './yaml-text.ts';

export interface YamlFacts {
  readonly remarks: readonly Remark[];
  readonly uses: readonly ImageUse[];
  readonly rewrites: readonly ImageRewrite[];
  /** Kinds of Troubleshoot specs that stand in it, in a Secret too. */
  readonly specs: ReadonlySet<SpecKind>;
  /** Everything was read; otherwise something may stand in it that is not listed here. */
  readonly whole: boolean;
}

interface FoundSpec {
  readonly kind: SpecKind;
  readonly document: YamlDocument;
  /** From the text that the spec was read from to the text of the file. */
  readonly outward: (remark: Remark) => Remark;
}

/** `clean`: it is known to hold no character that YAML may not hold. */
export async function yamlFacts(
  text: string,
  { clean = false }: { readonly clean?: boolean } = {},
): Promise<YamlFacts> {
  const images: NamedImages = { uses: [], rewrites: [], remarks: [] };
  const remarks: Remark[] = [];
  const found: FoundSpec[] = [];
  const tell = (remark: Remark): void => {
    remarks.push(remark);
  };
  const read = (document: YamlDocument): void => {
    collectImages(document, images);
    addSpec(document, (remark) => remark, found);
    const nested = nestedSpecs(document, text);
    remarks.push(...nested.remarks);
    for (const { text: inner, outward } of nested.specs) {
      const toFile = (remark: Remark): Remark => ({ ...remark, ...outward(remark) });
      eachDocument(
        inner,
        (remark) => {
          tell(toFile(remark));
        },
        (innerDocument) => {
          addSpec(innerDocument, toFile, found);
        },
      );
    }
  };
  eachDocument(text, tell, read, { clean });
  const whole = !remarks.some(({ code }) => code.startsWith('yaml/') && code !== 'yaml/duplicate-key');
  if (found.length > 0) {
    // Loaded only here: it costs more than reading a hundred add-ons without such a file.
    const { judgeSpec } = await import('./troubleshoot.ts');
    for (const { kind, document, outward } of found) remarks.push(...judgeSpec(kind, document).map(outward));
  }
  const specs = new Set(found.map(({ kind }) => kind));
  return { remarks: [...remarks, ...images.remarks], uses: images.uses, rewrites: images.rewrites, specs, whole };
}

function addSpec(document: YamlDocument, outward: FoundSpec['outward'], found: FoundSpec[]): void {
  const kind = specKindOf(kindOf(document.tree));
  if (kind === undefined) return;
  // An API group of its own, such as another program's SupportBundle, or an older version.
  const apiVersion = document.tree.get('apiVersion');
  if (kind !== 'HostPreflight' && apiVersion !== 'troubleshoot.sh/v1beta2') return;
  found.push({ kind, document, outward });
}
