/** The scripts that resolve and fetch: which one a system needs, and the variables that both backends give it. */
import { osRow, type OsId } from '../../core/os.ts';
import type { Repository } from '../../core/repositories.ts';
import type { Arch } from '../../core/ref.ts';
import { aptSources } from './apt-sources.ts';
import type { CollectRequest, Collector } from './collector.ts';
import { rpmRepositoryFile } from './rpm-repositories.ts';

/** Folder of the scripts below our own; a backend that moves them must move it whole. */
export const SCRIPT_FOLDER = 'host-packages';

/** Name of the script in {@link SCRIPT_FOLDER}. */
export function scriptOf(os: OsId): string {
  return osRow(os).family === 'debian' ? 'deb.sh' : 'rpm.sh';
}

/** Variables that do not depend on where things lie; the folders are added by the backend. */
export function scriptVariables(
  { os, arch }: Pick<CollectRequest, 'os' | 'arch'>,
  mode: Collector['name'],
): Readonly<Record<string, string>> {
  const { resolve, metadata, modules } = osRow(os);
  return {
    CURLEW_OS: os,
    CURLEW_ARCH: arch,
    CURLEW_MODE: mode,
    CURLEW_RESOLVE: resolve,
    CURLEW_METADATA: metadata ? '1' : '0',
    CURLEW_MODULES: modules ? '1' : '0',
  };
}

/** Repositories in the form of the system's package manager. */
export function repositoriesText(os: OsId, repositories: readonly Repository[], arch: Arch): string {
  return osRow(os).family === 'debian' ? aptSources(repositories, arch) : rpmRepositoryFile(repositories, arch);
}
