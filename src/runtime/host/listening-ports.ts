/** Ports of this machine that are in use, and by which programs: from the kernel's tables, without binding them. */
import { createReadStream } from 'node:fs';
import { readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '../../core/errors.ts';
import type { PortInUse, Protocol } from '../plan/ports.ts';
import type { FactOptions } from './host-facts.ts';
import { processInfo } from '../../platform/process/process-tree.ts';

/** proc_net_tcp: a listening TCP socket is in state 0A, a bound UDP socket without a peer in 07. */
const TABLES: readonly (readonly [file: string, protocol: Protocol, state: string])[] = [
  ['tcp', 'tcp', '0A'],
  ['tcp6', 'tcp', '0A'],
  ['udp', 'udp', '07'],
  ['udp6', 'udp', '07'],
];

interface Socket {
  readonly protocol: Protocol;
  readonly port: number;
  readonly inode: string;
}

/** The given ports that are in use, in order; a port that is bound on several addresses is listed once. */
export async function portsInUse(
  ports: readonly { readonly protocol: Protocol; readonly port: number }[],
  { proc = '/proc', signal }: FactOptions,
): Promise<readonly PortInUse[]> {
  if (ports.length === 0) return [];
  const keys = new Set(ports.map(({ protocol, port }) => `${protocol} ${port}`));
  const sockets: Socket[] = [];
  for (const [file, protocol, state] of TABLES) {
    for await (const socket of socketsOf(join(proc, 'net', file), protocol, state)) {
      signal.throwIfAborted();
      if (keys.has(`${protocol} ${socket.port}`)) sockets.push(socket);
    }
  }
  if (sockets.length === 0) return [];
  const owners = await ownersOf(new Set(sockets.map(({ inode }) => inode)), proc);
  const byPort = new Map<string, PortInUse>();
  for (const { protocol, port, inode } of sockets) {
    const key = `${protocol} ${port}`;
    const process = owners.get(inode) ?? byPort.get(key)?.process;
    byPort.set(key, { protocol, port, process });
  }
  return [...byPort.values()].toSorted((a, b) => a.port - b.port);
}

/** A missing table (no IPv6) has no sockets. Reads line by line: a busy machine has very many. */
async function* socketsOf(path: string, protocol: Protocol, state: string): AsyncGenerator<Socket> {
  let rest = '';
  try {
    for await (const chunk of createReadStream(path, 'latin1') as AsyncIterable<string>) {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const fields = line.trim().split(/\s+/);
        const [, local = '', , is] = fields;
        const port = Number.parseInt(local.slice(local.lastIndexOf(':') + 1), 16);
        if (is === state && Number.isInteger(port)) yield { protocol, port, inode: fields[9] ?? '' };
      }
    }
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error;
  }
}

/** Program names by socket inode; without root only those of the same user are visible. */
async function ownersOf(inodes: ReadonlySet<string>, proc: string): Promise<ReadonlyMap<string, string>> {
  const owners = new Map<string, string>();
  for (const pid of await readdir(proc)) {
    if (!/^\d+$/.test(pid)) continue;
    const folder = join(proc, pid, 'fd');
    for (const fd of await readdir(folder).catch(() => [])) {
      const target = await readlink(join(folder, fd)).catch(() => '');
      const [, inode = ''] = /^socket:\[(\d+)\]$/.exec(target) ?? [];
      if (!inodes.has(inode) || owners.has(inode)) continue;
      const name = processInfo(Number(pid))?.name;
      if (name !== undefined) owners.set(inode, name);
    }
  }
  return owners;
}
