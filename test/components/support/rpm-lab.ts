/** A signed repository of the small distribution on a loopback server, and collectors that use it. */
import { mkdir, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Collected, CollectRequest } from '../../../src/build/host-packages/collector.ts';
import { createHostCollector } from '../../../src/build/host-packages/host-collector.ts';
import type { OsId } from '../../../src/core/os.ts';
import type { Arch } from '../../../src/core/ref.ts';
import type { Repository } from '../../../src/core/repositories.ts';
import { never, noReport } from '../../support/context.ts';
import type { Fault, WebServer } from '../../support/web-server.ts';
import { tree, type Tree } from '../../support/tree.ts';
import { cannotRun, ROOT, shell } from './programs.ts';
import { MODULES, PACKAGES } from './rpm-packages.ts';
import { makeKey, makeMetadata, makeRpms, serveFolder, type SigningKey } from './rpm-repository.ts';

export const SCRIPTS: string = join(ROOT, 'scripts');

/** Why tests with rpm repositories cannot run here, or undefined. */
export function cannotRunRpm(): string | undefined {
  return cannotRun('rpmbuild', 'rpmsign', 'dnf', 'createrepo_c', 'modifyrepo_c', 'gpg', 'setpriv', 'unshare');
}

export interface RpmLab {
  readonly box: Tree;
  /** The folder that is served. */
  readonly folder: string;
  readonly key: SigningKey;
  readonly server: WebServer;
  /** What the server does instead of what is right; empty for a sound repository. */
  readonly faults: Fault[];
  readonly close: () => Promise<void>;
}

export async function startRpmLab(): Promise<RpmLab> {
  const box = await tree();
  const folder = box.at('repository');
  const key = await makeKey(box.path, 'small');
  await makeRpms(folder, PACKAGES);
  await key.signPackages(folder);
  await makeMetadata(folder, MODULES);
  const faults: Fault[] = [];
  const server = await serveFolder(folder, [
    (asked, regular) => {
      for (const fault of faults) {
        const reply = fault(asked, regular);
        if (reply !== undefined) return reply;
      }
      return undefined;
    },
  ]);
  const close = async (): Promise<void> => {
    await server[Symbol.asyncDispose]();
    await box[Symbol.asyncDispose]();
  };
  return { box, folder, key, server, faults, close };
}

/** An independent copy of the lab's repository. */
export async function copyRepository(lab: RpmLab, target: string): Promise<void> {
  await shell('cp -a "$1" "$2"', lab.folder, target);
}

export interface Asking {
  readonly task?: CollectRequest['task'];
  readonly os?: OsId;
  readonly arch?: Arch;
  readonly known?: string;
  readonly repositories?: readonly Repository[];
  readonly signal?: AbortSignal;
  /** Where the output goes; a new folder of the lab if not told. */
  readonly folder?: string;
  readonly scratch?: string;
}

export interface ForeignObject extends Collected {
  readonly folder: string;
  readonly files: readonly string[];
}

let count = 0;

/** The repository of the lab as a row of the table would have it. */
export function repositoryOf(lab: RpmLab): Repository {
  return { id: 'small', url: `${lab.server.url}/`, key: lab.key.url };
}

/** Collects with the host backend. */
export async function take(lab: RpmLab, names: readonly string[], asking: Asking = {}): Promise<ForeignObject> {
  count += 1;
  const { os = 'rhel-8', arch = 'amd64', signal = never } = asking;
  const folder = asking.folder ?? lab.box.at(`taken-${count}`);
  const scratch = asking.scratch ?? lab.box.at(`scratch-${count}`);
  await mkdir(folder, { recursive: true });
  await mkdir(scratch, { recursive: true });
  const repositories = { [os]: asking.repositories ?? [repositoryOf(lab)] };
  const collector = createHostCollector({ scripts: SCRIPTS, env: process.env, repositories });
  const { task = 'collect' } = asking;
  const request = { id: os, task, os, arch, names, known: asking.known, folder, scratch };
  const collected = await collector.collect(request, { report: noReport, signal });
  return { ...collected, folder, files: await filesIn(folder) };
}

export async function filesIn(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder, { recursive: true });
  const files = await Promise.all(names.map(async (name) => (await stat(join(folder, name))).isFile()));
  return names.filter((_, index) => files[index]).toSorted();
}

/** `name version arch` of what was collected. */
export function labels(collected: Collected): readonly string[] {
  return collected.packages.map(({ name, version, arch }) => `${name} ${version} ${arch}`);
}
