/** Facts about a YAML text, independent of its path: the same text in many versions is checked once. */
import { nestedSpecs } from './support-bundle.ts';
import type { Remark } from './spot.ts';
import { specKindOf, type TroubleshootKind } from './troubleshoot-schema.ts';
import { collectImages, documentKind, type ImageRewrite, type ImageUse, type NamedImages } from './yaml-images.ts';
import { eachDocument, type YamlDocument } from './yaml-text.ts';

export interface YamlFacts {
  readonly remarks: readonly Remark[];
  readonly uses: readonly ImageUse[];
  readonly rewrites: readonly ImageRewrite[];
  /** Kinds of Troubleshoot specs in it, including specs in a Secret. */
  readonly specs: ReadonlySet<TroubleshootKind>;
  /** Everything was read; otherwise it may contain more than is listed here. */
  readonly whole: boolean;
}

interface FoundSpec {
  readonly kind: TroubleshootKind;
  readonly document: YamlDocument;
  /** Maps ranges of the spec's text to ranges of the file. */
  readonly outward: (remark: Remark) => Remark;
}

/** `clean`: the text is known to contain no invalid characters. */
export async function yamlFacts(
  text: string,
  { clean = false }: { readonly clean?: boolean } = {},
): Promise<YamlFacts> {
  const images: NamedImages = { uses: [], rewrites: [], remarks: [] };
  const remarks: Remark[] = [];
  const documents: FoundSpec[] = [];
  const addRemark = (remark: Remark): void => {
    remarks.push(remark);
  };
  const read = (document: YamlDocument): void => {
    collectImages(document, images);
    addSpec(document, (remark) => remark, documents);
    const nested = nestedSpecs(document, text);
    remarks.push(...nested.remarks);
    for (const { text: inner, outward } of nested.specs) {
      const toFile = (remark: Remark): Remark => ({ ...remark, ...outward(remark) });
      eachDocument(
        inner,
        (remark) => {
          addRemark(toFile(remark));
        },
        (innerDocument) => {
          addSpec(innerDocument, toFile, documents);
        },
      );
    }
  };
  eachDocument(text, addRemark, read, { clean });
  const whole = !remarks.some(({ code }) => code.startsWith('yaml/') && code !== 'yaml/duplicate-key');
  if (documents.length > 0) {
    // Loaded on use: it takes longer than reading a hundred add-ons without such a file.
    const { checkSpec } = await import('./troubleshoot.ts');
    for (const { kind, document, outward } of documents) remarks.push(...checkSpec(kind, document).map(outward));
  }
  const specs = new Set(documents.map(({ kind }) => kind));
  return { remarks: [...remarks, ...images.remarks], uses: images.uses, rewrites: images.rewrites, specs, whole };
}

function addSpec(document: YamlDocument, outward: FoundSpec['outward'], specs: FoundSpec[]): void {
  const kind = specKindOf(documentKind(document.tree));
  if (kind === undefined) return;
  // Another API group, such as another program's SupportBundle, or an older version.
  const apiVersion = document.tree.get('apiVersion');
  if (kind !== 'HostPreflight' && apiVersion !== 'troubleshoot.sh/v1beta2') return;
  specs.push({ kind, document, outward });
}
