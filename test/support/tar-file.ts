/** Tar archives made by hand, also such as no tool would write. */
import { Header } from 'tar';

export interface TarItem {
  readonly path: string;
  readonly data?: Uint8Array | string;
  readonly type?: 'File' | 'Directory' | 'SymbolicLink' | 'Link' | 'CharacterDevice' | 'FIFO';
  readonly linkTo?: string;
  /** Size in the header, when it is to be another than that of the data. */
  readonly size?: number;
}

export function tarOf(items: readonly TarItem[], { end = true }: { readonly end?: boolean } = {}): Buffer {
  const parts: Buffer[] = [];
  for (const { path, data = '', type = 'File', linkTo = '', size } of items) {
    const body = Buffer.from(data);
    const block = Buffer.alloc(512);
    const header = new Header({ path, mode: 0o644, size: size ?? body.byteLength, type, linkpath: linkTo });
    header.mtime = new Date(0);
    if (header.encode(block)) throw new Error(`${path} does not fit into a header`);
    parts.push(block, body, Buffer.alloc((512 - (body.byteLength % 512)) % 512));
  }
  return Buffer.concat(end ? [...parts, Buffer.alloc(1024)] : parts);
}
