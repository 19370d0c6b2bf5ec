/** Images that are made here, not pulled. No digest depends on the zlib that a Node has. */
import { anyHeader, paddingOf, TAR_END, type TarEntry } from '../src/formats/archive/header.ts';
import { deflatedMember } from '../src/formats/archive/member.ts';
import { digestOf, type Digest } from '../src/core/digest.ts';
import type { Arch } from '../src/core/ref.ts';

export interface MadeBlob {
  readonly digest: Digest;
  readonly type: string;
  readonly data: Buffer;
}

export interface MadeImage {
  readonly manifest: MadeBlob;
  /** Config and layer. */
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
export function makeTar(entries: readonly MadeEntry[]): Buffer {
  const parts = entries.flatMap((entry) => {
    if (entry.type !== 'File') return [anyHeader(entry)];
    const { path, mode, data } = entry;
    const { byteLength: size } = data;
    return [anyHeader({ type: 'File', path, mode, size }), data, Buffer.alloc(paddingOf(size))];
  });
  return Buffer.concat([...parts, Buffer.alloc(TAR_END)]);
}

export function makeBlob(type: string, data: Buffer): MadeBlob {
  return { type, data, digest: digestOf(data) };
}

export function describe({ type, digest, data }: MadeBlob) {
  return { mediaType: type, digest, size: data.byteLength };
}

const LAYER = 'application/vnd.oci.image.layer.v1.tar';

/** `config` is what a container of it runs by default, as the OCI image specification has it. A small layer stays as it is. */
export function makeImage(arch: Arch, config: object, entries: readonly MadeEntry[]): MadeImage {
  const tar = makeTar(entries);
  const isSmall = tar.byteLength < 1 << 20;
  const layer = isSmall ? makeBlob(LAYER, tar) : makeBlob(`${LAYER}+gzip`, Buffer.from(deflatedMember(tar)));
  const about = { architecture: arch, os: 'linux', config, rootfs: { type: 'layers', diff_ids: [digestOf(tar)] } };
  const blob = makeBlob('application/vnd.oci.image.config.v1+json', Buffer.from(JSON.stringify(about)));
  const type = 'application/vnd.oci.image.manifest.v1+json';
  const content = { schemaVersion: 2, mediaType: type, config: describe(blob), layers: [describe(layer)] };
  return { manifest: makeBlob(type, Buffer.from(JSON.stringify(content))), blobs: [blob, layer] };
}
