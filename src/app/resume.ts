/** Repeats the request of the last run. */
import { realpath, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { CurlewError, ifExists } from '../core/errors.ts';
import { unfinishedRequest } from '../runtime/prepare/last-run.ts';
import { readFlags } from '../spec/flags.ts';
import type { Context } from '../core/context.ts';
import { install, planInstall } from './install.ts';
import type { NodeResult } from './install-result.ts';
import { installedFolder } from '../steps/node/install-folder.ts';
import { commandName, parseCommand, type SavedCommand } from '../steps/node/saved-command.ts';
import { placesOf } from '../steps/node/target.ts';
import { planReset, reset } from './reset.ts';
import { planRollback, rollback } from './rollback.ts';
import { planUninstall, uninstall } from './uninstall.ts';
import {
  RESET,
  RESUME,
  ROLLBACK,
  RUN,
  UNINSTALL,
  type InstallRequest,
  type KeptRequest,
  type ResumeRequest,
} from '../requests/node.ts';
import { useCase } from '../core/request.ts';

export type ResumeResult =
  | ({ readonly resumed: string; readonly result: NodeResult } & Cluster)
  | { readonly resumed: undefined };

/** The cluster that hooks of the resumed trial used. */
type Cluster = Pick<KeptRequest, 'kubeconfig' | 'context'>;

/** `FILE_UNUSABLE` if the saved request is missing or invalid, or the run was started in another folder. */
export const resume = useCase(RESUME, async (request, context): Promise<ResumeResult> => {
  const directory = await installedFolder(request, context);
  const last = await unfinishedRequest(directory);
  if (last === undefined) return { resumed: undefined };
  const saved = last.asked?.command;
  const name = commandName(saved);
  if (name === undefined) throw unusable();
  const repeat = REPEATED.get(name);
  if (repeat === undefined) {
    throw new CurlewError(
      'UNSUPPORTED',
      `cannot resume: the last run was started by curlew ${name}, which is unknown`,
      { hint: 'use the version of curlew that started it' },
    );
  }
  return { resumed: last.run, ...(await repeat(saved, { request, directory, context })) };
});

interface Resumed {
  readonly request: ResumeRequest;
  /** The install folder. */
  readonly directory: string;
  readonly context: Context;
}

type Repeat = (document: unknown, resumed: Resumed) => Promise<{ readonly result: NodeResult } & Cluster>;

type Run<Request> = (request: Request, context: Context, installer: string | undefined) => Promise<NodeResult>;

/** Repeats a saved request, or plans that; `installer` is the text of its spec. */
function repeated<Request extends KeptRequest>(
  parse: (document: unknown) => SavedCommand<Request> | undefined,
  run: Run<Request>,
  plan: Run<Request>,
): Repeat {
  return async (document, { request, directory, context }) => {
    const asked = parse(document);
    if (asked === undefined) throw unusable();
    const cluster = await clusterOf(request, asked, context);
    const again = {
      ...asked.request,
      ...cluster,
      hookTimeout: request.hookTimeout ?? asked.request.hookTimeout,
      yes: asked.request.yes === true || request.yes === true,
      unconfined: asked.request.unconfined === true || request.unconfined === true,
    };
    const original = { ...context, cwd: asked.cwd };
    await requireSameFolder(directory, placesOf(withFlagFolder(again), original).directory);
    return { result: await (request.dryRun === true ? plan : run)(again, original, asked.installer), ...cluster };
  };
}

/** The kubeconfig of this command, or else of the run that it resumes; `NOT_FOUND` if that file is gone. */
async function clusterOf(
  { kubeconfig, context: chosen }: ResumeRequest,
  asked: SavedCommand<KeptRequest>,
  { cwd }: Context,
): Promise<Cluster> {
  if (kubeconfig !== undefined) return { kubeconfig: resolve(cwd, kubeconfig), context: chosen };
  const { kubeconfig: former, context: formerContext } = asked.request;
  const path = former === undefined ? undefined : resolve(asked.cwd, former);
  if (path !== undefined && (await ifExists(`read ${path}`, stat(path))) === undefined) {
    throw new CurlewError('NOT_FOUND', `cannot resume: ${path}, the kubeconfig of the last run, does not exist`, {
      hint: 'curlew resume --kubeconfig FILE continues with another kubeconfig for the same cluster',
    });
  }
  return path === undefined ? {} : { kubeconfig: path, context: formerContext };
}

/** Former versions did not save the folder that a flag of kURL named. */
function withFlagFolder<Request extends KeptRequest & Pick<InstallRequest, 'flags'>>(request: Request): Request {
  return { ...request, installDir: request.installDir ?? readFlags(request.flags ?? []).installDirectory };
}

function specRun(kind: InstallRequest['kind']): Repeat {
  return repeated(
    (document) => parseCommand(document, RUN.fields),
    async (request, context, installerText) => install({ ...request, kind, installerText }, context),
    async (request, context, installerText) => planInstall({ ...request, kind, installerText }, context),
  );
}

const REPEATED: ReadonlyMap<string, Repeat> = new Map([
  ['install', specRun('install')],
  ['join', specRun('join')],
  ['upgrade', specRun('upgrade')],
  ['rollback', repeated((document) => parseCommand(document, ROLLBACK.fields), rollback, planRollback)],
  ['uninstall', repeated((document) => parseCommand(document, UNINSTALL.fields), uninstall, planUninstall)],
  ['reset', repeated((document) => parseCommand(document, RESET.fields), reset, planReset)],
]);

/** The request in a copied or moved folder is for another place, possibly the machine itself, which must not be changed. */
async function requireSameFolder(folder: string, original: string): Promise<void> {
  const real = async (path: string): Promise<string> => realpath(path).catch(() => path);
  if ((await real(folder)) === (await real(original))) return;
  throw new CurlewError('FILE_UNUSABLE', `cannot resume: the last run in ${folder} was started in ${original}`, {
    hint: 'the folder was copied or moved: repeat the full command that started it, for the right folder',
  });
}

function unusable(): CurlewError {
  return new CurlewError('FILE_UNUSABLE', 'cannot resume: the last run has no valid saved request', {
    hint: 'repeat the full command that started it',
  });
}
