/**
 * A bundle plan as a JSON file. Executing it later or on another machine produces the same bytes, and plans can be compared.
 * Each entry is on a separate line, so that diff tools show what has changed. Pure.
 */
import * as v from 'valibot';
import type { PlacedEntry } from '../../formats/archive/entry.ts';
import { planSplice, type PayloadOrigin, type SplicePart } from '../../formats/archive/splice.ts';
import { readTocRows, tocRow } from '../../formats/archive/toc.ts';
import { parseBundleJson, type BundledPackage } from '../../core/bundle.ts';
import { CurlewError, errorAbout } from '../../core/errors.ts';
import { fieldsOf, isObject, isSize, parseText, shallowJson } from '../../core/json.ts';
import { BUNDLE_JSON } from '../../core/layout.ts';
import { checked, digest, size, type Read } from '../../core/schema.ts';
import { keyProblem } from '../store/key.ts';
import type { RootFile } from '../../own/root-files.ts';
import type { BundlePlan, PlannedSource } from './bundle-plan.ts';
import type { ResolvedPackage } from './resolve.ts';

const PLAN_FORMAT = 1;
/** Maximum bytes of a plan; fits a million entries. */
export const PLAN_LIMIT: number = 448 << 20;
const KIND = 'bundle plan';
/** More than any release has. */
const MAX_SOURCES = 10_000;

export interface SavedBundlePlan {
  /** Address of its store. */
  readonly store: string;
  readonly plan: BundlePlan;
}

const isKey = (value: unknown): boolean => typeof value === 'string' && keyProblem(value) === undefined;

const savedSource = v.object({
  key: v.custom<string>(isKey, 'not a key of a store'),
  size,
  tocDigest: digest,
  etag: v.exactOptional(v.string()),
  /** Reason for a package's version. */
  because: v.optional(v.unknown()),
});

const savedPlan = v.object({
  store: v.string(),
  size,
  tocDigest: v.optional(v.unknown()),
  sources: v.pipe(v.array(savedSource), v.maxLength(MAX_SOURCES, `more than ${MAX_SOURCES}`)),
  /** Checked row by row: a plan may have a million. */
  entries: v.custom<unknown[]>(Array.isArray, 'not a list'),
});

interface FileSource extends PlannedSource {
  readonly because?: string;
}

/** The file's content; equal for equal plans of one store. */
export function formatBundlePlan({ store, plan }: SavedBundlePlan): string {
  const { splice, sources, files } = plan;
  const packages = [...plan.packages, ...plan.extras];
  const local = packages.findIndex((_, at) => sources[at]?.etag === undefined);
  if (local !== -1) {
    throw new CurlewError('UNSUPPORTED', `cannot save the plan: ${sources[local]?.key} is not in the store`, {
      hint: 'add the images to the Manifest of an add-on, publish it, and include it with --with',
    });
  }
  const head = {
    format: PLAN_FORMAT,
    kind: KIND,
    store,
    size: splice.size,
    tocDigest: splice.index.tocDigest,
    sources: sources.map(({ key, size, tocDigest, etag }, at) => {
      return { key, size, tocDigest, etag, because: packages[at]?.because };
    }),
  };
  const data = new Map(files.map((file) => [file.path, file.data] as const));
  const rows = splice.index.entries.map((entry, at) => rowText(entry, splice.origins[at], data.get(entry.path)));
  return `${JSON.stringify(head, undefined, 1).slice(0, -2)},\n "entries": [\n${rows.join(',\n')}\n ]\n}\n`;
}

/** The row of the table of contents without derived fields, and the location of its bytes. */
function rowText(entry: PlacedEntry, origin: PayloadOrigin | undefined, data: Uint8Array | undefined): string {
  const { modtime: _modtime, chunkDigest: _chunkDigest, ...row } = tocRow(entry);
  if (origin !== undefined) return JSON.stringify({ ...row, from: origin });
  if (entry.linkTo !== undefined || data === undefined) return JSON.stringify(row);
  return JSON.stringify({ ...row, data: Buffer.from(data).toString('base64') });
}

/**
 * Parses a plan. Recomputes its layout, which must match; anything else is `FILE_UNUSABLE`. The caller must check
 * that the sources match the plan.
 */
export function parseBundlePlan(text: string, from: string): SavedBundlePlan {
  const bad = errorAbout(
    'FILE_UNUSABLE',
    `cannot read ${from}: not a bundle plan`,
    'create it again: curlew bundle installer.yaml --from STORE --dry-run --out FILE',
  );
  const other = (shown: string): CurlewError =>
    new CurlewError('UNSUPPORTED', `cannot read ${from}: unknown plan format ${shown}`, {
      hint: 'a newer curlew created this plan; use that version, or create the plan again',
    });
  const value = parseText(text, shallowJson, bad);
  if (!isObject(value) || value['kind'] !== KIND) throw bad(`kind is not ${JSON.stringify(KIND)}`);
  if (value['format'] !== PLAN_FORMAT) throw other(JSON.stringify(value['format'])?.slice(0, 40) ?? 'undefined');
  const { store, size: total, tocDigest, sources: listed, entries: rows } = checked(savedPlan, value, bad);
  try {
    const sources = readSources(listed);
    const entries = readTocRows(rows, total, from);
    const { parts, files } = readParts(rows, entries, sources);
    const splice = planSplice(parts);
    if (splice.size !== total) throw bad(`its entries add up to ${splice.size} bytes instead of ${total}`);
    if (splice.index.tocDigest !== tocDigest) throw bad('its entries are not at their offsets');
    return { store, plan: { ...readBundle(files, sources, from), sources, files, splice } };
  } catch (error) {
    if (!(error instanceof CurlewError) || error.code !== 'PACKAGE_INVALID') throw error;
    throw bad(error.message, error);
  }
}

function wrong(what: string): CurlewError {
  return new CurlewError('PACKAGE_INVALID', what);
}

function readSources(listed: Read<typeof savedPlan>['sources']): readonly FileSource[] {
  const keys = new Set<string>();
  return listed.map(({ key, size: bytes, tocDigest, etag, because }, at): FileSource => {
    if (keys.has(key)) throw wrong(`sources[${at}]: ${key} is duplicated`);
    keys.add(key);
    const source = { key, size: bytes, tocDigest };
    if (at === listed.length - 1 && etag === undefined) return source;
    if (etag === undefined || typeof because !== 'string') throw wrong(`sources[${at}]: its etag or reason`);
    return { ...source, etag, because };
  });
}

/** Each entry is inline data, a link to an earlier entry, or a range of a source. */
function readParts(
  rows: readonly unknown[],
  entries: readonly PlacedEntry[],
  sources: readonly FileSource[],
): { readonly parts: readonly SplicePart[]; readonly files: readonly RootFile[] } {
  const files: RootFile[] = [];
  const ends = sources.map(() => 0);
  const parts = entries.map((entry, at): SplicePart => {
    const row = rows[at];
    const { from, data } = fieldsOf(row);
    const { path, mode } = entry;
    if (from === undefined && data === undefined && entry.linkTo !== undefined) return { kind: 'link', entry };
    if (from === undefined) {
      if (typeof data !== 'string') throw wrong(`${path}: neither data nor a range of a source`);
      const file = { path, mode, data: Buffer.from(data, 'base64') };
      files.push(file);
      return { kind: 'file', ...file };
    }
    const { source, offset, length } = readOrigin(from, path);
    const end = ends[source];
    const { size: bytes = 0 } = sources[source] ?? {};
    if (end === undefined) throw wrong(`${path}: source ${source} does not exist`);
    if (offset < end) throw wrong(`${path}: its range overlaps the previous one`);
    if (offset + length > bytes) throw wrong(`${path}: its range ends after the source`);
    ends[source] = offset + length;
    return { kind: 'entry', source, at: offset, length, entry };
  });
  return { parts, files };
}

/** Without a schema: a plan may have a million rows. */
function readOrigin(value: unknown, path: string): PayloadOrigin {
  const { source, offset, length } = fieldsOf(value);
  if (!isSize(source) || !isSize(offset) || !isSize(length)) throw wrong(`${path}: its range`);
  return { source, offset, length };
}

/** The packages in the plan's bundle.json, in the order of the sources. */
function readBundle(
  files: readonly RootFile[],
  sources: readonly FileSource[],
  from: string,
): Pick<BundlePlan, 'bundle' | 'packages' | 'extras'> {
  const file = files.find(({ path }) => path === BUNDLE_JSON);
  if (file === undefined) throw wrong(`${BUNDLE_JSON} is missing`);
  const bundle = parseBundleJson(Buffer.from(file.data).toString('utf8'), from);
  const { packages, beside = [] } = bundle;
  const tool = sources.at(-1)?.etag === undefined ? 1 : 0;
  if (packages.length + beside.length !== sources.length - tool || tool !== (bundle.layout === undefined ? 1 : 0))
    throw wrong(`${BUNDLE_JSON} has different packages`);
  const resolved = <Described extends BundledPackage>(one: Described, at: number): Described & ResolvedPackage => {
    const { key = '', size, because = '' } = sources[at] ?? {};
    if (size !== one.size) throw wrong(`${key}: its size does not match ${BUNDLE_JSON}`);
    return { ...one, key, because };
  };
  return {
    bundle,
    packages: packages.map(resolved),
    extras: beside.map((one, at) => resolved(one, packages.length + at)),
  };
}
