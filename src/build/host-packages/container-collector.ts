/** Fetches packages with the system's own package manager, in a container of its builder image. */
import { readdir, readFile, rename, stat } from 'node:fs/promises';
import { join, posix } from 'node:path';
import type { Reporting } from '../../core/cancellable.ts';
import { sentBytes, type SentEntry } from '../../formats/archive/send-tar.ts';
import { errnoOf, fileError } from '../../core/errors.ts';
import type { Repository } from '../../core/repositories.ts';
import { osRow, type OsId } from '../../core/os.ts';
import { readPem } from '../../platform/http/roots.ts';
import type { Containers, EndedContainer } from '../containers/containers.ts';
import type { Collected, Collector, CollectRequest } from './collector.ts';
import { readResult, readCollected } from './listing.ts';
import { problemError } from './problem.ts';
import { doingOf, repositoriesText, SCRIPT_FOLDER, scriptOf, scriptVariables, sourceDigest } from './script.ts';

export interface ContainerCollectorOptions {
  readonly containers: Pick<Containers, 'bring' | 'identify' | 'run'>;
  /** Folder of curlew's scripts. */
  readonly scripts: string;
  /** Builder images that replace those of the table. */
  readonly builders: Readonly<Partial<Record<OsId, string>>>;
  /** Repositories of rpm systems from the site's configuration. */
  readonly repositories: Readonly<Partial<Record<OsId, readonly Repository[]>>>;
  /** Certificate authorities in PEM that the package manager also trusts. */
  readonly caFile?: string | undefined;
  readonly limitMs: number;
}

/** Folder of all our files in a container. */
const HOME = '/curlew';
const PLACES = {
  scripts: posix.join(HOME, SCRIPT_FOLDER),
  known: posix.join(HOME, 'known'),
  // All output is in one folder: copying a folder starts a process in the engine.
  answer: posix.join(HOME, 'answer'),
  out: posix.join(HOME, 'answer', 'out'),
  result: posix.join(HOME, 'answer', 'result'),
  state: posix.join(HOME, 'state'),
  authorities: posix.join(HOME, 'authorities.pem'),
  repositories: posix.join(HOME, 'repositories'),
  keys: posix.join(HOME, 'keys'),
} as const;

/** Limits on an operating system's folder, and on the script's results. */
const OUT_LIMITS = { bytes: 2 ** 36, files: 20_000 };
const ANSWER_LIMITS = { bytes: 64 << 20, files: 20 };

function inContainer(path: string): string {
  return path.slice(1);
}

/** The files of a folder, and of its subfolders if `deep`, with their paths in the container. */
async function sentFolder(folder: string, at: string, deep: boolean): Promise<readonly SentEntry[]> {
  const sent: SentEntry[] = [{ kind: 'folder', path: inContainer(at), mode: 0o755 }];
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const full = join(folder, entry.name);
    const path = posix.join(at, entry.name);
    if (entry.isDirectory() && deep) sent.push(...(await sentFolder(full, path, deep)));
    if (!entry.isFile()) continue;
    const { size } = await stat(full);
    sent.push({ kind: 'file', path: inContainer(path), mode: 0o755, size, content: { kind: 'path', path: full } });
  }
  return sent;
}

/**
 * Collects with the same scripts as the host backend. Uses the builder image's repositories; of this machine only proxies and
 * certificate authorities are passed in, through the same archive stream as everything else.
 */
export function createContainerCollector(options: ContainerCollectorOptions): Collector {
  const { containers, builders } = options;
  const builderOf = (os: OsId): string => builders[os] ?? osRow(os).builder;
  return {
    name: 'container',
    inputs: async (os, { signal }) => {
      const builder = await containers.identify(builderOf(os), { signal });
      return `container ${builder} ${sourceDigest(os, repositoriesFor(os, options))}`;
    },
    collect: async (request, { report, signal }) =>
      collect(request, { ...options, image: builderOf(request.os), report, signal }),
  };
}

interface Collecting extends ContainerCollectorOptions, Reporting {
  readonly image: string;
}

/**
 * Repositories that are passed in. The public images of rpm systems refer to retired mirrors or do not have all repositories;
 * Ubuntu's have everything, and cannot reach key rings of this machine.
 */
function repositoriesFor(
  os: OsId,
  { repositories, builders }: Pick<ContainerCollectorOptions, 'repositories' | 'builders'>,
): readonly Repository[] | undefined {
  const { family, repositories: public_ } = osRow(os);
  if (family === 'debian') return undefined;
  return repositories[os] ?? (builders[os] === undefined ? public_ : undefined);
}

interface CarriedRepository {
  readonly repository: Repository;
  readonly keys: readonly SentEntry[];
}

/** Copies keys that are files of this machine into the container, and adapts their addresses. */
async function withKeys(repositories: readonly Repository[]): Promise<readonly CarriedRepository[]> {
  const carried: CarriedRepository[] = [];
  for (const repository of repositories) {
    const keys: SentEntry[] = [];
    const names: string[] = [];
    for (const address of repository.key?.split(' ') ?? []) {
      if (!address.startsWith('file:')) {
        names.push(address);
        continue;
      }
      const place = posix.join(PLACES.keys, `${repository.id}-${keys.length}`);
      keys.push(sentBytes(inContainer(place), await readFile(new URL(address))));
      names.push(`file://${place}`);
    }
    carried.push({ repository: names.length === 0 ? repository : { ...repository, key: names.join(' ') }, keys });
  }
  return carried;
}

async function filesFor({ os, arch, known }: CollectRequest, collecting: Collecting): Promise<readonly SentEntry[]> {
  const { scripts, caFile } = collecting;
  const folder = (at: string): SentEntry => ({ kind: 'folder', path: inContainer(at), mode: 0o755 });
  const repositories = await withKeys(repositoriesFor(os, collecting) ?? []);
  const listed = repositories.map(({ repository }) => repository);
  const list = listed.length === 0 ? [] : [Buffer.from(repositoriesText(os, listed, arch))];
  return [
    ...(await sentFolder(join(scripts, SCRIPT_FOLDER), PLACES.scripts, true)),
    ...(known === undefined ? [] : await sentFolder(known, PLACES.known, false)),
    ...(caFile === undefined
      ? []
      : [sentBytes(inContainer(PLACES.authorities), Buffer.from(await readPem(caFile), 'latin1'))]),
    ...repositories.flatMap(({ keys }) => keys),
    ...list.map((text) => sentBytes(inContainer(PLACES.repositories), text)),
    folder(PLACES.answer),
    folder(PLACES.out),
    folder(PLACES.state),
  ];
}

async function collect(request: CollectRequest, collecting: Collecting): Promise<Collected> {
  const { containers, caFile, limitMs, image, report, signal } = collecting;
  const { id } = request;
  const doing = doingOf(request);
  await containers.bring(image, { id, report, signal });
  const files = await filesFor(request, collecting).catch((error: unknown) => {
    throw fileError(doing, error);
  });
  const env = {
    ...scriptVariables(request, 'container'),
    CURLEW_OUT: PLACES.out,
    CURLEW_STATE: PLACES.state,
    CURLEW_RESULT: PLACES.result,
    CURLEW_KNOWN: request.known === undefined ? '' : PLACES.known,
    CURLEW_REPOSITORIES: repositoriesFor(request.os, collecting) === undefined ? '' : PLACES.repositories,
    HOME: PLACES.state,
    ...(caFile === undefined ? {} : { SSL_CERT_FILE: PLACES.authorities }),
  };
  const command = ['bash', posix.join(PLACES.scripts, scriptOf(request.os)), ...request.names];
  const run = { id, doing, image, command, env, files, limitMs };
  return containers.run(run, async (ended) => take(ended, request, signal), { report, signal });
}

async function take(
  { status, lastLines, collect: out }: EndedContainer,
  request: CollectRequest,
  signal: AbortSignal,
): Promise<Collected> {
  const doing = doingOf(request);
  if (status !== 0) {
    const result = join(request.scratch, 'result');
    // A script that could not start has written no result.
    const answered = await out(PLACES.result, { into: result, limits: ANSWER_LIMITS }).catch((error: unknown) => {
      if (signal.aborted) throw error;
      return [];
    });
    const hasProblem = answered.some(({ path }) => path === 'problem');
    const text = hasProblem ? await readResult(join(result, 'problem'), doing) : undefined;
    throw problemError(text, { doing: `${doing} (${request.arch})`, last: lastLines });
  }
  const answer = join(request.scratch, 'answer');
  await out(PLACES.answer, { into: answer, limits: OUT_LIMITS });
  // Both are in the same cache: replaces the empty target folder. A folder without files is not copied.
  await rename(join(answer, 'out'), request.folder).catch((error: unknown) => {
    if (errnoOf(error) !== 'ENOENT') throw fileError(doing, error);
  });
  return readCollected({ answer: join(answer, 'result'), folder: request.folder, doing }, { signal });
}
