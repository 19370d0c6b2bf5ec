/** Ports on loopback for servers that cannot choose their own, while other tests start servers at the same time. */
import { randomInt } from 'node:crypto';
import { existsSync, rmSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';

const PORTS = { first: 20_000, end: 32_000 } as const;
/** The files by which this process has claimed ports. */
const claimed: string[] = [];

/**
 * A free port on loopback that no other caller, in this or another process, gets while this process lives. It is below the
 * ephemeral range, so that no outgoing connection takes it before the server is up.
 */
export async function freePort(): Promise<number> {
  const claims = join('/tmp', `curlew-test-ports-${process.getuid?.() ?? 0}`);
  await mkdir(claims, { recursive: true });
  if (claimed.length === 0) {
    process.once('exit', () => {
      for (const path of claimed) rmSync(path, { force: true });
    });
  }
  for (;;) {
    const port = randomInt(PORTS.first, PORTS.end);
    const claim = join(claims, String(port));
    if (!(await isClaimed(claim))) continue;
    claimed.push(claim);
    if (await isFree(port)) return port;
  }
}

/** Whether this process has claimed the port; the claim of a process that has ended is removed, for a later try. */
async function isClaimed(path: string): Promise<boolean> {
  try {
    await writeFile(path, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    const owner = await readFile(path, 'utf8').catch(() => '');
    // An empty one is about to be written.
    if (owner !== '' && !existsSync(`/proc/${owner}`)) await rm(path, { force: true });
    return false;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => {
      resolve(false);
    });
    server.listen(port, '127.0.0.1', () => {
      server.close(() => {
        resolve(true);
      });
    });
  });
}
