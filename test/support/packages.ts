/** Archives of format 1 made in memory or on disk for tests, without any building. */
import { writeFile } from 'node:fs/promises';
import { digestOf } from '../../src/core/digest.ts';
import { formatAddonJson, packageDigest, type AddonJson, type PackageFile } from '../../src/core/package.ts';
import { deflatedMember } from '../../src/formats/archive/member.ts';
import { packBytes } from '../../src/formats/archive/pack.ts';
import { placeArchive, type ArchivePlan, type SizedEntry } from '../../src/formats/archive/place.ts';

export interface TestFile {
  readonly path: string;
  readonly data: Uint8Array | string;
  readonly mode?: 0o644 | 0o755;
  /** Deflated whatever it holds, as no builder of ours would. */
  readonly deflated?: boolean;
}

/** Reproducible bytes that no deflater can shrink. */
export function noise(size: number, seed = 1): Buffer {
  const bytes = Buffer.allocUnsafe(size);
  let state = (seed * 2_654_435_761) >>> 0 || 1;
  for (let at = 0; at < size; at += 1) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes[at] = state & 0xff;
  }
  return bytes;
}

function deflate(raw: Uint8Array): ReturnType<typeof packBytes> {
  const member = deflatedMember(raw);
  return { member, packing: { packed: member.byteLength, stored: false, packedDigest: digestOf(member) } };
}

/** The plan and the whole bytes of an archive of these files, in this order. */
export function archiveOf(files: readonly TestFile[]): { readonly bytes: Buffer; readonly plan: ArchivePlan } {
  const members = new Map<string, Uint8Array>();
  const entries = files.map(({ path, data, mode = 0o644, deflated = false }): SizedEntry => {
    const raw = Buffer.from(data);
    const { member, packing } = deflated ? deflate(raw) : packBytes(path, raw);
    members.set(path, member);
    return { path, mode, size: raw.byteLength, digest: digestOf(raw), ...packing };
  });
  const plan = placeArchive(entries);
  const bytes = Buffer.alloc(plan.index.size);
  for (const { offset, data } of plan.pieces) bytes.set(data, offset);
  for (const { path, offset, packed } of plan.index.entries) {
    if (packed > 0) bytes.set(members.get(path) ?? new Uint8Array(0), offset);
  }
  return { bytes, plan };
}

/** A whole package: the files (paths below the prefix) and an `addon.json` that fits them. */
export function packageOf(
  name: string,
  version: string,
  files: readonly TestFile[],
  extra: Partial<AddonJson> = {},
): { readonly bytes: Buffer; readonly plan: ArchivePlan; readonly addon: AddonJson } {
  const listed = files.map(({ path, data, mode = 0o644 }): PackageFile => {
    const raw = Buffer.from(data);
    return { path, mode, size: raw.byteLength, digest: digestOf(raw) };
  });
  const addon: AddonJson = {
    format: 1,
    name,
    version,
    tree: 'addons',
    arch: 'amd64',
    os: [],
    hooks: [],
    images: [],
    imageFormat: 'oci',
    deps: {},
    unpacked: { files: listed.reduce((sum, { size }) => sum + size, 0), images: 0 },
    requires: [],
    fulfills: [],
    settings: undefined,
    tool: '0.0.0',
    ...extra,
    digest: packageDigest(listed),
  };
  const prefix = `${addon.tree}/${name}/${version}/`;
  const all = [{ path: 'addon.json', data: formatAddonJson(addon) }, ...files];
  return { ...archiveOf(all.map((file) => ({ ...file, path: prefix + file.path }))), addon };
}

/** Writes a package of these files to a path. */
export async function writePackage(path: string, ...args: Parameters<typeof packageOf>): Promise<AddonJson> {
  const { bytes, addon } = packageOf(...args);
  await writeFile(path, bytes);
  return addon;
}
