/** `curlew inspect`: what a package or a bundle is, from its first entry and its table of contents. */
import { resolve } from 'node:path';
import { findEntry, readFile, readIndex } from '../../formats/archive/read.ts';
import { readDelta } from '../../bundle/delta/delta-read.ts';
import type { ArchiveIndex, PlacedEntry } from '../../formats/archive/entry.ts';
import type { Digest } from '../../core/digest.ts';
import { visible } from '../../core/diagnostic.ts';
import { CurlewError } from '../../core/errors.ts';
import type { DeltaJson } from '../../core/bundle.ts';
import { ADDON_JSON, DELTA_CONTENTS, OMITTED_JSON, ownerOf, prefixOf } from '../../core/layout.ts';
import { parseAddonJson, refOf, type AddonJson } from '../../core/package.ts';
import type { Command } from '../command.ts';
import { openArchive } from '../../app/archives/open-archive.ts';
import { deltaLines } from '../render/delta.ts';
import { formatBytes } from '../render/units.ts';

interface Inspected {
  readonly path: string;
  readonly size: number;
  /** Of the table of contents. */
  readonly digest: Digest;
  /** Of a delta only those whose addon.json it brings. */
  readonly packages: readonly InspectedPackage[];
  /** The bundle that a delta makes. */
  readonly delta?: DeltaJson | undefined;
  /** With `--files`. */
  readonly files?: readonly PlacedEntry[];
}

/** Folders of operating systems that a bundle is without, and how many bytes they unpack to. */
interface LeftOut {
  readonly folders: readonly string[];
  readonly bytes: number;
}

interface InspectedPackage extends AddonJson {
  readonly omitted?: LeftOut;
}

const WHOLE: LeftOut = { folders: [], bytes: 0 };

const DOCUMENT_LIMIT = 32 << 20;

export const inspect: Command<Inspected> = {
  name: 'inspect',
  summary: 'Show what a package or bundle holds',
  operands: 'FILE',
  options: { files: { type: 'boolean', help: 'list every file with size, mode and digest' } },
  examples: ['curlew inspect bundle.tar.gz', 'curlew inspect bundle.tar.gz --json | jq .packages'],
  run: async (args, { cwd, signal }) => {
    const [path] = args.positionals;
    if (path === undefined) {
      throw new CurlewError('USAGE', 'curlew inspect: name one file', { hint: 'curlew inspect FILE' });
    }
    await using source = await openArchive(resolve(cwd, path), { signal });
    const index = await readIndex(source, { signal });
    const delta =
      findEntry(index, DELTA_CONTENTS) === undefined ? undefined : await readDelta(source, index, { signal });
    const whole = delta?.full ?? index;
    const packages: InspectedPackage[] = [];
    for (const { path: name } of index.entries) {
      const owner = ownerOf(name);
      if (owner === undefined || name !== prefixOf(owner) + ADDON_JSON) continue;
      const entry = findEntry(index, name);
      if (entry === undefined) continue;
      const text = Buffer.from(await readFile(source, entry, { limit: DOCUMENT_LIMIT, signal })).toString();
      const addon = parseAddonJson(text, `${path}: ${name}`);
      const isWhole = findEntry(whole, prefixOf(owner) + OMITTED_JSON) === undefined;
      packages.push(isWhole ? addon : { ...addon, omitted: lackingIn(whole, addon) });
    }
    const result = { path, size: index.size, digest: index.tocDigest, packages, delta: delta?.bundle.delta };
    return args.flag('files') ? { ...result, files: index.entries } : result;
  },
  render: ({ path, size, digest, packages, delta, files }) =>
    [
      `${path}: ${formatBytes(size)}`,
      line('contents', digest),
      ...(delta === undefined ? [] : deltaLines(delta)),
      ...packages.flatMap(packageLines),
      ...(files ?? []).map(fileLine),
    ].join('\n'),
};

/** By what is there, not by the list of what is not: a delta leaves that to a place which has the same one. */
function lackingIn({ entries }: Pick<ArchiveIndex, 'entries'>, { os, unpacked, ...addon }: AddonJson): LeftOut {
  const prefix = prefixOf(refOf(addon));
  const files = entries.filter(({ path }) => path.startsWith(prefix));
  const there = files.filter(({ path }) => ![ADDON_JSON, OMITTED_JSON].includes(path.slice(prefix.length)));
  const bytes = there.reduce((sum, { size }) => sum + size, 0);
  return {
    folders: os.filter((folder) => !there.some(({ path }) => path.startsWith(`${prefix}${folder}/`))),
    bytes: Math.max(0, unpacked.files + unpacked.images - bytes),
  };
}

function packageLines(addon: InspectedPackage): readonly string[] {
  const { name, version, arch, hooks, images, os, omitted = WHOLE, unpacked } = addon;
  const there = os.filter((folder) => !omitted.folders.includes(folder));
  const rows: readonly (readonly [string, string])[] = [
    ['package', `${name} ${version} (${arch})`],
    ['digest', addon.digest],
    ['unpacked', `${formatBytes(unpacked.files - omitted.bytes)} files, ${formatBytes(unpacked.images)} images`],
    ['hooks', hooks.join(' ') || 'none'],
    ...(there.length > 0 ? ([['systems', there.join(' ')]] as const) : []),
    ...(omitted.folders.length > 0 ? ([['without', omitted.folders.join(' ')]] as const) : []),
    ...images.map(({ id, reference }) => ['image', `${id} ${reference}`] as const),
  ];
  return ['', ...rows.map(([label, text]) => line(label, text))];
}

/** A digest behind its label fills a line of eighty columns. */
function line(label: string, text: string): string {
  return visible(`${label.padEnd(8)} ${text}`);
}

function fileLine({ path, mode, size, digest, linkTo }: PlacedEntry): string {
  const link = linkTo === undefined ? '' : ` -> ${linkTo}`;
  return visible(`${mode.toString(8).padStart(4, '0')} ${String(size).padStart(12)} ${digest} ${path}${link}`);
}
