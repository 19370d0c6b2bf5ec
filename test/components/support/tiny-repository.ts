/** The repository of tiny packages with its key, and the host backend that collects from it. */
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Collected } from '../../../src/build/host-packages/collector.ts';
import { createHostCollector } from '../../../src/build/host-packages/host-collector.ts';
import type { Arch } from '../../../src/core/ref.ts';
import { noReport } from '../../support/context.ts';
import { tree } from '../../support/tree.ts';
import {
  addPackages,
  endAgent,
  indexed,
  makeKey,
  repositoryAt,
  type Served,
  type SigningKey,
} from './apt-repository.ts';
import { ROOT } from './programs.ts';
import { TINY_PACKAGES } from './tiny-packages.ts';

export const TINY_PROGRAMS = ['apt-get', 'dpkg-deb', 'dpkg-scanpackages', 'gpg', 'gpgconf'] as const;

export interface CollectOptions {
  readonly arch?: Arch;
  readonly known?: string;
  /** Path of a key ring instead of the right one, or `none`. */
  readonly key?: string;
  /** The environment beside the search path. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly folder?: string;
  readonly scratch?: string;
}

export interface Got extends Collected {
  readonly folder: string;
  /** Names of the files in it. */
  readonly files: readonly string[];
}

export interface TinyRepository extends AsyncDisposable {
  /** Absolute path of something in its folder. */
  readonly at: (...parts: readonly string[]) => string;
  readonly key: SigningKey;
  readonly served: Served;
  /** A key that it is not signed with. */
  readonly strangeKey: SigningKey;
  /** Collects for Ubuntu 22.04 from `url`, in folders of its own. */
  readonly collect: (
    url: string,
    names: readonly string[],
    options: CollectOptions,
    signal: AbortSignal,
  ) => Promise<Got>;
  /** An environment in which `bash` is first this line, which has to go on with the real one. */
  readonly withBash: (line: string) => Promise<Readonly<Record<string, string>>>;
}

export async function openTinyRepository(): Promise<TinyRepository> {
  const box = await tree();
  const key = await makeKey(box.path, 'good');
  const strangeKey = await makeKey(box.path, 'strange');
  await addPackages(box.at('repository'), TINY_PACKAGES);
  const served = await indexed(box.at('repository'), key, ['amd64', 'arm64']);
  let count = 0;
  const fresh = async (name: string): Promise<string> => {
    count += 1;
    const folder = box.at(`${name}-${count}`);
    await mkdir(folder);
    return folder;
  };
  return {
    at: box.at,
    key,
    strangeKey,
    served,
    collect: async (url, names, options, signal) => {
      const { arch = 'amd64', known, env = {}, key: ring = key.ring } = options;
      const folder = options.folder ?? (await fresh('out'));
      const scratch = options.scratch ?? (await fresh('scratch'));
      const collector = createHostCollector({
        scripts: join(ROOT, 'scripts'),
        env: { PATH: process.env['PATH'], ...env },
        repositories: { 'ubuntu-22.04': [repositoryAt(url, ring === 'none' ? undefined : ring)] },
      });
      const os = 'ubuntu-22.04' as const;
      const request = { id: os, task: 'collect', os, arch, names, known, folder, scratch } as const;
      const collected = await collector.collect(request, { report: noReport, signal });
      await rm(scratch, { recursive: true });
      return { ...collected, folder, files: await readdir(folder) };
    },
    withBash: async (line) => {
      const folder = await fresh('bash');
      await writeFile(join(folder, 'bash'), `#!/bin/sh\n${line}\n`, { mode: 0o755 });
      return { PATH: `${folder}:${process.env['PATH'] ?? ''}` };
    },
    [Symbol.asyncDispose]: async () => {
      await endAgent(box.path, 'good');
      await endAgent(box.path, 'strange');
      await box[Symbol.asyncDispose]();
    },
  };
}
