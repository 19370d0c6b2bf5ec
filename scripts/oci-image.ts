/** Images that are made here, not pulled. No digest depends on the zlib that a Node has. */
import { anyHeader, paddingOf, TAR_END, type TarEntry } from '../src/formats/archive/header.ts';
import { deflatedMember } from '../src/formats/archive/member.ts';
import { digestOf, type Digest } from '../src/core/digest.ts';
import { compareText, type Arch } from '../src/core/ref.ts';

export interface MadeBlob {
  readonly digest: Digest;
  readonly type: string;
  readonly data: Buffer;
}

export interface MadeImage {
  readonly manifest: MadeBlob;
  /** Config and layers. */
  readonly blobs: readonly MadeBlob[];
}

/** An entry of a tar, with its bytes where it is a file. */
export type MadeEntry = Exclude<TarEntry, { readonly type: 'File' }> | MadeFile;

interface MadeFile {
  readonly type: 'File';
  readonly path: string;
  readonly mode: number;
  readonly data: Uint8Array;
}

/** Nothing but the entries and their order decides its bytes. */
function makeTar(entries: readonly MadeEntry[]): Buffer {
  const parts = entries.flatMap((entry) => {
    if (entry.type !== 'File') return [anyHeader(entry)];
    const { path, mode, data } = entry;
    const { byteLength: size } = data;
    return [anyHeader({ type: 'File', path, mode, size }), data, Buffer.alloc(paddingOf(size))];
  });
  return Buffer.concat([...parts, Buffer.alloc(TAR_END)]);
}

function makeBlob(type: string, data: Buffer): MadeBlob {
  return { type, data, digest: digestOf(data) };
}

function describe({ type, digest, data }: MadeBlob) {
  return { mediaType: type, digest, size: data.byteLength };
}

const LAYER = 'application/vnd.oci.image.layer.v1.tar';

/** `config` is what a container of it runs by default, as the OCI image specification has it. A small layer stays as it is. */
export function makeImage(arch: Arch, config: object, layers: readonly (readonly MadeEntry[])[]): MadeImage {
  const tars = layers.map(makeTar);
  const blobs = tars.map((tar) =>
    tar.byteLength < 1 << 20 ? makeBlob(LAYER, tar) : makeBlob(`${LAYER}+gzip`, Buffer.from(deflatedMember(tar))),
  );
  const about = { architecture: arch, os: 'linux', config, rootfs: { type: 'layers', diff_ids: tars.map(digestOf) } };
  const blob = makeBlob('application/vnd.oci.image.config.v1+json', json(about));
  const type = 'application/vnd.oci.image.manifest.v1+json';
  const content = { schemaVersion: 2, mediaType: type, config: describe(blob), layers: blobs.map(describe) };
  return { manifest: makeBlob(type, json(content)), blobs: [blob, ...blobs] };
}

const INDEX = 'application/vnd.oci.image.index.v1+json';

/** An archive of OCI's form with one name, and behind it an index with the image of each architecture: a reader takes its own. */
export function imageArchive(name: string, version: string, images: ReadonlyMap<Arch, MadeImage>): Buffer {
  const manifests = [...images].map(([arch, { manifest }]) => ({
    ...describe(manifest),
    platform: { os: 'linux', architecture: arch },
  }));
  const index = makeBlob(INDEX, json({ schemaVersion: 2, mediaType: INDEX, manifests }));
  const annotations = { 'io.containerd.image.name': name, 'org.opencontainers.image.ref.name': version };
  const named = { schemaVersion: 2, mediaType: INDEX, manifests: [{ ...describe(index), annotations }] };
  // Images of several architectures may share a blob.
  const blobs = [index, ...[...images.values()].flatMap((image) => [...image.blobs, image.manifest])];
  const files = new Map(blobs.map(({ digest, data }) => [`blobs/${digest.replace(':', '/')}`, data]));
  return makeTar([
    madeFile('oci-layout', 0o644, json({ imageLayoutVersion: '1.0.0' })),
    madeFile('index.json', 0o644, json(named)),
    ...[...files].map(([path, data]) => madeFile(path, 0o644, data)),
  ]);
}

export function madeFile(path: string, mode: number, data: Uint8Array): MadeEntry {
  return { type: 'File', path, mode, data };
}

export function madeLink(path: string, linkpath: string): MadeEntry {
  return { type: 'SymbolicLink', path, mode: 0o777, linkpath };
}

/** The entries of a layer in the order of their paths, with these folders and all those that the entries are in. */
export function withFolders(entries: readonly MadeEntry[], folders: readonly string[] = []): readonly MadeEntry[] {
  const all = new Set([...folders, ...entries.flatMap(({ path }) => foldersOf(path))]);
  const made = [...all].map((path): MadeEntry => ({ type: 'Directory', path, mode: 0o755 }));
  return [...made, ...entries].toSorted((a, b) => compareText(a.path, b.path));
}

function foldersOf(path: string): readonly string[] {
  const parts = path.replace(/\/$/, '').split('/').slice(0, -1);
  return parts.map((_, at) => `${parts.slice(0, at + 1).join('/')}/`);
}

function json(value: object): Buffer {
  return Buffer.from(JSON.stringify(value));
}
