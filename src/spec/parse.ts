/**
 * Parses an installer spec (kURL's document) into data with places. Pure; returns all findings at once, throws none.
 */
import { compareDiagnostics, hasErrors, type Diagnostic } from '../core/diagnostic.ts';
import { nearest } from '../core/nearest.ts';
import { folderName, type Installer } from './installer.ts';
import { mergeInstallers } from './merge.ts';
import { readSpec, UNKNOWN_ADDON, type SpecFindings } from './read-spec.ts';
import { isJsonObject, readYaml, type Json, type JsonObject, type Path, type YamlText } from '../formats/yaml/yaml.ts';

const API_VERSIONS: readonly Json[] = ['cluster.kurl.sh/v1beta1', 'kurl.sh/v1beta1'];
const TOP_KEYS = ['apiVersion', 'kind', 'metadata', 'spec', 'status'];

export interface ParsedInstaller {
  /** Undefined if the findings contain an error, like the document. */
  readonly installer: Installer | undefined;
  /** The document, or the result of a merge. */
  readonly document: JsonObject | undefined;
  /** The readable part of a spec with errors, for further checks. Undefined without a map of add-ons. */
  readonly readable: Installer | undefined;
  readonly diagnostics: readonly Diagnostic[];
}

/** A spec file; its name is for messages. */
export interface SpecText {
  readonly file: string;
  readonly text: string;
}

/** Reads an installer spec; `file` is its name for messages. */
export function parseInstaller(file: string, text: string): ParsedInstaller {
  const { diagnostics, head } = readHead({ file, text });
  return finish(diagnostics, head);
}

/**
 * Reads a spec and a site's overlay, which need not be complete itself, and checks the result. If one of the files is empty,
 * the other is used unchanged, including its name.
 */
export function parseMerged(base: SpecText, overlay: SpecText): ParsedInstaller {
  if (isEmptySpec(overlay)) return parseInstaller(base.file, base.text);
  if (isEmptySpec(base)) return parseInstaller(overlay.file, overlay.text);
  const [below, above] = [readHead(base, { part: true }), readHead(overlay, { part: true })];
  const diagnostics = [...below.diagnostics, ...above.diagnostics];
  if (below.head === undefined || above.head === undefined) return finish(diagnostics, undefined);
  const { document, problems } = mergeInstallers(below.head.document, above.head.document);
  for (const { path, message } of problems) {
    const place = above.head.placeOf(path);
    diagnostics.push({ code: 'installer/merge', severity: 'error', message, place });
  }
  const [lower, upper] = [below.head, above.head];
  const ownerOf = (path: Path): Head | undefined =>
    [upper, lower].find((head) => hasPath(head.document, path)) ??
    [lower].find(({ nulls }) => path.length === 2 && nulls.some((name) => name === path[1]));
  const placeOf = (path: Path): Diagnostic['place'] => ownerOf(path)?.placeOf(path) ?? placeOf(path.slice(0, -1));
  // A null in the overlay keeps what the spec has.
  const overlaid = Object.keys(isJsonObject(upper.document['spec']) ? upper.document['spec'] : {}).map(folderName);
  const nulls = lower.nulls.filter((name) => !overlaid.includes(folderName(name)));
  return finish(diagnostics, { document, placeOf, nulls, plainText: (path) => ownerOf(path)?.plainText(path) });
}

/** The findings for a reader of the packages: it finds out which names are wrong, so names need not be guessed at. */
export function withoutNameGuesses(diagnostics: readonly Diagnostic[]): readonly Diagnostic[] {
  return diagnostics.filter(({ code }) => code !== `installer/${UNKNOWN_ADDON}`);
}

/** Only white space: kURL's scripts create such a file if there is no spec. */
export function isEmptySpec({ text }: SpecText): boolean {
  return text.trim() === '';
}

interface Head extends Pick<YamlText, 'placeOf' | 'plainText'> {
  readonly document: JsonObject;
  /** Keys of `spec` whose value is null, and which the document does not have. */
  readonly nulls: readonly string[];
}

function hasPath(value: Json | undefined, path: Path): boolean {
  const [first, ...rest] = path;
  if (first === undefined) return value !== undefined;
  if (!isJsonObject(value) || !Object.hasOwn(value, first)) return false;
  return hasPath(value[first], rest);
}

function findings(
  diagnostics: Diagnostic[],
  { placeOf, plainText }: Pick<YamlText, 'placeOf' | 'plainText'>,
): SpecFindings {
  return {
    placeOf,
    plainText,
    add: (severity, code, path, message, hint) => {
      diagnostics.push({ code: `installer/${code}`, severity, message, place: placeOf(path), hint });
    },
  };
}

/**
 * Reads everything except the content of `spec`. The head has a map `spec`, or null for no add-ons. A part of a merge may
 * omit it.
 */
function readHead(
  { file, text }: SpecText,
  { part = false }: { readonly part?: boolean } = {},
): { readonly diagnostics: Diagnostic[]; readonly head: Head | undefined } {
  const read = readYaml(file, text);
  const { value, nullKeys, placeOf, plainText } = read;
  const diagnostics = [...read.diagnostics];
  if (hasErrors(diagnostics)) return { diagnostics, head: undefined };
  const problems = findings(diagnostics, read);
  if (!isJsonObject(value)) {
    problems.add('error', 'document', [], 'not an installer spec: expected a map with apiVersion, kind and spec');
    return { diagnostics, head: undefined };
  }
  for (const key of Object.keys(value)) {
    if (TOP_KEYS.includes(key)) continue;
    const near = nearest(key, TOP_KEYS);
    problems.add('warning', 'unknown-key', [key], `"${key}" has no meaning here`, near && `did you mean "${near}"?`);
  }
  const { apiVersion, kind, metadata, spec } = value;
  if (apiVersion === undefined || !API_VERSIONS.includes(apiVersion)) {
    problems.add(
      'error',
      'api-version',
      ['apiVersion'],
      `apiVersion must be cluster.kurl.sh/v1beta1${actual(apiVersion)}`,
    );
  }
  if (kind !== 'Installer') problems.add('error', 'kind', ['kind'], `kind must be Installer${actual(kind)}`);
  checkName(metadata, problems);
  const head = { document: value, placeOf, plainText, nulls: nullKeys(['spec']) };
  if (isJsonObject(spec)) return { diagnostics, head };
  if (spec === undefined && (part || nullKeys([]).includes('spec'))) return { diagnostics, head };
  problems.add('error', 'spec', ['spec'], 'spec must be a map of add-ons');
  return { diagnostics, head: undefined };
}

function actual(value: Json | undefined): string {
  return typeof value === 'string' ? `, not ${value.slice(0, 80)}` : '';
}

function checkName(metadata: Json | undefined, problems: SpecFindings): void {
  const name = isJsonObject(metadata) ? metadata['name'] : metadata;
  if (name === undefined || (typeof name === 'string' && isJsonObject(metadata))) return;
  problems.add('error', 'metadata', ['metadata', 'name'], 'metadata must be a map, and its name a string');
}

function finish(diagnostics: Diagnostic[], head: Head | undefined): ParsedInstaller {
  const installer = head === undefined ? undefined : readInstaller(head, findings(diagnostics, head));
  const failed = installer === undefined || hasErrors(diagnostics);
  return {
    installer: failed ? undefined : installer,
    document: failed ? undefined : head?.document,
    readable: installer,
    diagnostics: diagnostics.toSorted(compareDiagnostics),
  };
}

function readInstaller({ document, nulls }: Head, problems: SpecFindings): Installer {
  const { metadata, spec } = document;
  const name = isJsonObject(metadata) ? metadata['name'] : undefined;
  return {
    name: typeof name === 'string' ? name : undefined,
    ...readSpec(isJsonObject(spec) ? spec : {}, nulls, problems),
  };
}
