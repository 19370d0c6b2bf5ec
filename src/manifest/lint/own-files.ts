/** Reads and checks the text files of an add-on: YAML, placeholders, and image names. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import type { Place } from '../../core/diagnostic.ts';
import { HOST_PREFLIGHT, INSTALL_SH, MANIFEST } from '../../core/layout.ts';
import { compareText } from '../../core/ref.ts';
import type { AddonListing } from '../read-addon.ts';
import { finder, type Find } from '../rules.ts';
import { decodeText, isCleanText, readBytesFile, readTextFile } from '../text-file.ts';
import { findIgnores, type IgnoreComment } from './ignore-comments.ts';
import { readArchiveNames } from './image-archives.ts';
import { checkListed, checkUnused, watchUnused, type FileImages } from './image-use.ts';
import {
  filledPlaceholders,
  findPlaceholders,
  PLACEHOLDER_TEXTS,
  placeholderRemarks,
  type Placeholder,
} from './placeholders.ts';
import { missingPaths } from './kustomization.ts';
import { placer, addFindings, type Placer } from './spot.ts';
import type { YamlFacts } from './yaml-facts.ts';
import { createSingleFlightCache, type SingleFlightCache } from '../../platform/limit/single-flight-cache.ts';

/** Facts about a text, independent of its path: the same text in many versions is checked once. */
interface TextFacts extends YamlFacts {
  readonly placeholders: readonly Placeholder[];
  /** Without a file name yet. */
  readonly ignores: readonly IgnoreComment[];
}

/** Facts about texts by digest, for all add-ons of one run. */
export type KnownTexts = SingleFlightCache<TextFacts>;

/** The facts about a file that is not YAML. */
const NO_YAML: YamlFacts = { remarks: [], uses: [], rewrites: [], specs: new Set(), whole: true };

const MAX_FILE_BYTES = 8 * 1024 * 1024;
const MAX_SUM_BYTES = 64 * 1024 * 1024;
const YAML = /\.ya?ml$/;
const SUPPORT_BUNDLE = /(?:^|\/)(?:tmpl-)?troubleshoot\.yaml$/;
/** Limit of cached facts; real repositories have fewer texts. */
const MAX_KNOWN = 20_000;

export function createKnownTexts(): KnownTexts {
  return createSingleFlightCache({ most: MAX_KNOWN });
}

interface Options {
  readonly known: KnownTexts;
  readonly signal: AbortSignal;
}

/** Lines with findings, by `lineKey`: keeping whole files would take too much memory. */
export type SourceLines = ReadonlyMap<string, string>;

export function lineKey({ file, line }: Pick<Place, 'file' | 'line'>): string {
  return `${file}:${line}`;
}

/** Checks the text files; returns the lines with findings, to be displayed with them. */
export async function checkOwnFiles(
  listing: AddonListing,
  find: Find,
  { known, signal }: Options,
): Promise<{ readonly lines: SourceLines; readonly comments: readonly IgnoreComment[] }> {
  const { manifest, folder, shown, files } = listing;
  const lines = new Map<string, string>();
  const comments: IgnoreComment[] = [];
  const images: FileImages[] = [];
  const unused = watchUnused(manifest.requests);
  const filled = filledPlaceholders(listing.installScript ?? '');
  const named = new Map<string, () => string>();
  const texts = {
    files: files.map(({ path }) => path),
    scripts: () => [listing.manifestText, listing.installScript ?? '', ...scriptsOf(listing)].join('\n'),
  };
  let sum = 0;
  // Small files first: they name most of the images, and large ones need not be searched for those.
  for (const { path, size } of files.toSorted((a, b) => a.size - b.size)) {
    const isYaml = YAML.test(path);
    if (!isYaml && !PLACEHOLDER_TEXTS.test(path)) continue;
    const file = `${shown}/${path}`;
    sum += size;
    const read = sum > MAX_SUM_BYTES ? 'too-large' : readOwn(join(folder, path), isYaml, known);
    if (typeof read === 'string') {
      if (read === 'too-large') reportTooLarge(file, isYaml, find);
      continue;
    }
    signal.throwIfAborted();
    const { text } = read;
    const facts = await read.facts;
    if (path !== MANIFEST) unused.read(text, facts);
    const place = placer(file, text);
    const note = finder((diagnostic) => {
      keepLine(diagnostic.place, text(), lines);
      find(diagnostic);
    });
    for (const ignore of facts.ignores) {
      const comment = { ...ignore, place: { ...ignore.place, file } };
      comments.push(comment);
      keepLine(comment.place, text(), lines);
    }
    addFindings(placeholderRemarks(facts.placeholders, filled), place, note);
    if (!isYaml) continue;
    addFindings(facts.remarks, place, note);
    checkSpecFile(path, place, facts, note);
    addFindings(missingPaths(path, text, texts), place, note);
    if (facts.uses.length + facts.rewrites.length === 0) continue;
    images.push({ place, uses: facts.uses, rewrites: facts.rewrites });
    named.set(file, text);
  }
  const noteNamed = finder((diagnostic) => {
    keepLine(diagnostic.place, named.get(diagnostic.place.file)?.() ?? '', lines);
    find(diagnostic);
  });
  images.sort((a, b) => compareText(a.place.file, b.place.file));
  const archives = images.length === 0 ? new Map<string, never>() : await readArchiveNames(listing, { signal });
  checkListed(manifest.requests, { files: images, archives }, noteNamed);
  checkUnused(unused, images, find);
  return { lines, comments };
}

/** The texts of its other shell scripts. */
function scriptsOf({ folder, files }: AddonListing): readonly string[] {
  return files
    .filter(({ path }) => path.endsWith('.sh') && path !== INSTALL_SH)
    .map(({ path }) => textAt(join(folder, path)));
}

function keepLine(place: Place, text: string, lines: Map<string, string>): void {
  let from = 0;
  for (let line = 1; line < place.line; line += 1) from = text.indexOf('\n', from) + 1;
  const end = text.indexOf('\n', from);
  // Copied, since a slice would keep the whole text in memory.
  lines.set(lineKey(place), Buffer.from(text.slice(from, end === -1 ? text.length : end)).toString());
}

interface OwnText {
  readonly facts: Promise<TextFacts>;
  /** Reads the file again if the facts were cached; rarely needed. */
  readonly text: () => string;
}

function readOwn(path: string, isYaml: boolean, known: KnownTexts): OwnText | 'too-large' | 'other' {
  const read = readBytesFile(path, MAX_FILE_BYTES);
  if (read.kind !== 'bytes') return read.kind === 'too-large' ? 'too-large' : 'other';
  const key = `${isYaml ? 'yaml' : 'text'}:${createHash('sha256').update(read.bytes).digest('base64')}`;
  let decoded: string | undefined;
  const facts = known.get(key, async () => {
    decoded = decodeText(read.bytes);
    return textFacts(decoded, isYaml, { clean: isYaml && isCleanText(read.bytes) });
  });
  return { facts, text: () => (decoded ??= textAt(path)) };
}

function textAt(path: string): string {
  const read = readTextFile(path, MAX_FILE_BYTES);
  return read.kind === 'text' ? read.text : '';
}

async function textFacts(text: string, isYaml: boolean, { clean }: { readonly clean: boolean }): Promise<TextFacts> {
  // Checking blocks the event loop: lets signals through between two texts.
  await setImmediate();
  const { yamlFacts } = isYaml ? await import('./yaml-facts.ts') : { yamlFacts: () => NO_YAML };
  return {
    ...(await yamlFacts(text, { clean })),
    placeholders: findPlaceholders(text),
    ignores: findIgnores('', text),
  };
}

function reportTooLarge(file: string, isYaml: boolean, find: Find): void {
  if (!isYaml) return;
  const place = { file, line: 1, column: 1, length: 1 };
  find('yaml/too-large', place, 'not checked: the file, or all files of the add-on together, are too large');
}

function checkSpecFile(path: string, place: Placer, { specs, whole }: YamlFacts, find: Find): void {
  if (!whole) return;
  const start = { file: place.file, line: 1, column: 1, length: 1 };
  if (path === HOST_PREFLIGHT && !specs.has('HostPreflight')) {
    const hint = 'apiVersion: troubleshoot.sh/v1beta2 and kind: HostPreflight';
    find('preflight/schema', start, 'the file contains no HostPreflight', hint);
  }
  if (SUPPORT_BUNDLE.test(path) && !specs.has('SupportBundle')) {
    const hint = 'kind: SupportBundle, or a Secret with the key support-bundle-spec';
    find('troubleshoot/no-spec', start, 'the file contains no SupportBundle', hint);
  }
}
