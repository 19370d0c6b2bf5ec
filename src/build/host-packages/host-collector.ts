/** Fetches packages with this machine's package manager in private state, without reading or changing that of the machine. */
import { constants } from 'node:fs';
import { access, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CurlewError, fileError } from '../../core/errors.ts';
import { osRow, type OsId } from '../../core/os.ts';
import type { Repository } from '../../core/repositories.ts';
import { tryProgram } from '../../platform/process/run-program.ts';
import type { Collected, Collector, CollectRequest } from './collector.ts';
import { readResult, readCollected } from './listing.ts';
import { problemError } from './problem.ts';
import { doingOf, repositoriesText, SCRIPT_FOLDER, scriptOf, scriptVariables, sourceDigest } from './script.ts';
import { makeMissing } from '../../platform/files/make-folder.ts';

export interface HostCollectorOptions {
  /** Folder of curlew's scripts. */
  readonly scripts: string;
  /** The caller's environment; its search path, proxies and authorities (`SSL_CERT_FILE`) are passed on. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Repositories that replace those of the table. */
  readonly repositories: Readonly<Partial<Record<OsId, readonly Repository[]>>>;
}

const INHERITED = ['PATH', 'http_proxy', 'https_proxy', 'no_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'] as const;

export function createHostCollector({ scripts, env, repositories }: HostCollectorOptions): Collector {
  const repositoriesOf = (os: OsId): readonly Repository[] => repositories[os] ?? osRow(os).repositories;
  const run = async (request: CollectRequest, signal: AbortSignal): Promise<Collected> => {
    const { os, arch, folder, scratch } = request;
    const doing = doingOf(request);
    const variables = { ...scriptVariables(request, 'host'), ...(await prepare(request, repositoriesOf(os), doing)) };
    const handed = [...INHERITED, 'SSL_CERT_FILE'].flatMap((name) => {
      const value = env[name];
      return value === undefined ? [] : [[name, value] as const];
    });
    const script = join(scripts, SCRIPT_FOLDER, scriptOf(os));
    return tryProgram(
      'bash',
      [script, ...request.names],
      { env: { ...Object.fromEntries(handed), ...variables }, cwd: scratch, line: () => undefined, signal },
      async ({ lastLines: last, error }) => {
        const answer = join(variables.CURLEW_STATE, 'result');
        if (error === undefined) return readCollected({ answer, folder, doing }, { signal });
        if (error.problem === 'missing' || error.problem === 'unusable') {
          throw new CurlewError('UNSUPPORTED', `cannot ${doing}: bash: ${error.reason}`, {
            hint: 'install bash',
            cause: error,
          });
        }
        throw problemError(await readResult(join(answer, 'problem'), doing), { doing: `${doing} (${arch})`, last });
      },
    );
  };
  return {
    name: 'host',
    inputs: async (os) => `host ${sourceDigest(os, repositoriesOf(os))}`,
    collect: async (request, { signal }) => run(request, signal),
  };
}

/** Creates the private folders; returns the variables that name them. */
async function prepare(
  { os, arch, known, folder, scratch }: CollectRequest,
  repositories: readonly Repository[],
  doing: string,
): Promise<{ readonly [name: string]: string; readonly CURLEW_STATE: string }> {
  const [state, home, list] = [join(scratch, 'state'), join(scratch, 'home'), join(scratch, 'repositories')];
  try {
    await makeMissing(state);
    await makeMissing(home);
    await writeFile(list, repositoriesText(os, repositories, arch), { mode: 0o600 });
  } catch (error) {
    throw fileError(doing, error);
  }
  if (osRow(os).family === 'debian') await checkKeyRings(repositories, doing);
  return { HOME: home, CURLEW_OUT: folder, CURLEW_STATE: state, CURLEW_KNOWN: known ?? '', CURLEW_REPOSITORIES: list };
}

/** apt reports a missing key ring as a wrong signature. */
async function checkKeyRings(repositories: readonly Repository[], doing: string): Promise<void> {
  for (const { id, key } of repositories) {
    if (key === undefined) continue;
    try {
      await access(key, constants.R_OK);
    } catch (error) {
      throw new CurlewError(
        'FILE_UNUSABLE',
        `cannot ${doing}: the key ring ${key} of the repository ${id} cannot be read`,
        {
          hint: 'install its package (ubuntu-keyring on Ubuntu, ubuntu-archive-keyring on Debian), or configure another key ring',
          cause: error,
        },
      );
    }
  }
}
