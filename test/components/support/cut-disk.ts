/** A disk that forgets, at a power cut, what was not synced: bytes of files, and in the stricter kind names in folders. */
import type { FileAct } from './strace-log.ts';

interface FileNode {
  data: Buffer;
  synced: Buffer;
}

interface FolderNode {
  readonly names: Map<string, DiskNode>;
  synced: ReadonlyMap<string, DiskNode>;
}

type DiskNode = FileNode | FolderNode;

/** `names`: those in folders outlast a cut at once, as in journalling file systems, or only when the folder was synced. */
export type DiskKind = 'names at once' | 'names when synced';

export class CutDisk {
  readonly #kind: DiskKind;
  readonly #root: FolderNode = { names: new Map(), synced: new Map() };

  /** `files` by path below the root; folders have no content. All of them are on disk. */
  constructor(kind: DiskKind, files: ReadonlyMap<string, Buffer | undefined>) {
    this.#kind = kind;
    for (const [path, data] of files) this.#put(path, data === undefined ? folder() : { data, synced: data });
    settle(this.#root);
  }

  /** Paths of the act are below the root; empty is the root itself. */
  apply(act: FileAct): void {
    const { path } = act;
    const node = this.#find(path);
    switch (act.kind) {
      case 'create':
        if (node === undefined) this.#put(path, { data: Buffer.alloc(0), synced: Buffer.alloc(0) });
        break;
      case 'truncate':
        if (node === undefined) this.#put(path, { data: Buffer.alloc(0), synced: Buffer.alloc(0) });
        else if ('data' in node) node.data = Buffer.alloc(0);
        break;
      case 'write':
        if (node !== undefined && 'data' in node) write(node, act.data, act.at ?? node.data.byteLength);
        break;
      case 'sync':
        if (node === undefined) break;
        if ('data' in node) node.synced = node.data;
        else node.synced = new Map(node.names);
        break;
      case 'folder':
        this.#put(path, folder());
        break;
      case 'remove':
        this.#parent(path)?.names.delete(nameOf(path));
        break;
      case 'rename':
      case 'link':
        if (node !== undefined) this.#put(act.to, node);
        if (act.kind === 'rename') this.#parent(path)?.names.delete(nameOf(path));
        break;
    }
  }

  /** What is there after a cut: bytes by path, undefined for folders. */
  afterCut(): ReadonlyMap<string, Buffer | undefined> {
    const found = new Map<string, Buffer | undefined>();
    const walk = (node: FolderNode, prefix: string): void => {
      for (const [name, child] of this.#kind === 'names at once' ? node.names : node.synced) {
        const path = `${prefix}${name}`;
        found.set(path, 'data' in child ? child.synced : undefined);
        if ('names' in child) walk(child, `${path}/`);
      }
    };
    walk(this.#root, '');
    return found;
  }

  #find(path: string): DiskNode | undefined {
    let node: DiskNode | undefined = this.#root;
    for (const name of path === '' ? [] : path.split('/'))
      node = node !== undefined && 'names' in node ? node.names.get(name) : undefined;
    return node;
  }

  #parent(path: string): FolderNode | undefined {
    const slash = path.lastIndexOf('/');
    const node = slash === -1 ? this.#root : this.#find(path.slice(0, slash));
    return node !== undefined && 'names' in node ? node : undefined;
  }

  #put(path: string, node: DiskNode): void {
    this.#parent(path)?.names.set(nameOf(path), node);
  }
}

function folder(): FolderNode {
  return { names: new Map(), synced: new Map() };
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

function settle(node: FolderNode): void {
  node.synced = new Map(node.names);
  for (const child of node.names.values()) if ('names' in child) settle(child);
}

function write(file: FileNode, data: Buffer, at: number): void {
  const grown = Buffer.alloc(Math.max(file.data.byteLength, at + data.byteLength));
  file.data.copy(grown);
  data.copy(grown, at);
  file.data = grown;
}
