/** The last run again, as it was asked for. */
import { realpath } from 'node:fs/promises';
import { CurlewError } from '../core/errors.ts';
import { lastAsked } from '../runtime/run/last-asked.ts';
import { readFlags } from '../spec/flags.ts';
import type { Context } from './context.ts';
import { INSTALL, install, type InstallRequest, type NodeResult } from './install.ts';
import { folderOf, type FolderRequest } from './install-folder.ts';
import { askedName, askedOf, type Shape } from './node/asked.ts';
import type { KeptRequest } from './node/kept-run.ts';
import { placesOf, type HookRequest } from './node/target.ts';
import { RESET, reset } from './reset.ts';
import { ROLLBACK, rollback } from './rollback.ts';
import { UNINSTALL, uninstall } from './uninstall.ts';

/** What is given of hooks takes the place of what the run was asked for. */
export interface ResumeRequest extends FolderRequest, HookRequest {
  /** No sandbox: hooks change this machine itself. */
  readonly unconfined?: boolean | undefined;
}

export type ResumeResult = { readonly resumed: string; readonly result: NodeResult } | { readonly resumed: undefined };

/** `FILE_UNUSABLE` where the run does not tell what it was asked for, or was begun in another folder. */
export async function resume(request: ResumeRequest, context: Context): Promise<ResumeResult> {
  const directory = folderOf(request, context);
  const last = await lastAsked(directory);
  if (last === undefined) return { resumed: undefined };
  const kept = last.asked?.command;
  const name = askedName(kept);
  if (name === undefined) throw unusable();
  const repeat = REPEATED.get(name);
  if (repeat === undefined) {
    throw new CurlewError('UNSUPPORTED', `resume: the last run was begun by curlew ${name}, which is not known`, {
      hint: 'use the version of curlew that began it',
    });
  }
  return { resumed: last.run, result: await repeat(kept, { request, directory, context }) };
}

interface Resumed {
  readonly request: ResumeRequest;
  /** The install folder. */
  readonly directory: string;
  readonly context: Context;
}

type Repeat = (kept: unknown, resumed: Resumed) => Promise<NodeResult>;

/** How a kept request of this shape is carried out; `installer` is the text of its spec. */
function repeated<Request extends KeptRequest>(
  shape: Shape<Request>,
  run: (request: Request, context: Context, installer: string | undefined) => Promise<NodeResult>,
): Repeat {
  return async (kept, { request, directory, context }) => {
    const asked = askedOf(kept, shape);
    if (asked === undefined) throw unusable();
    const again = {
      ...asked.request,
      hookTimeout: request.hookTimeout ?? asked.request.hookTimeout,
      yes: asked.request.yes === true || request.yes === true,
      unconfined: asked.request.unconfined === true || request.unconfined === true,
    };
    const there = { ...context, cwd: asked.cwd };
    await requireSameFolder(directory, placesOf(withFlagFolder(again), there).directory);
    return run(again, there, asked.installer);
  };
}

/** Former versions did not keep which folder a flag of kURL's named. */
function withFlagFolder<Request extends KeptRequest & Pick<InstallRequest, 'flags'>>(request: Request): Request {
  return { ...request, installDir: request.installDir ?? readFlags(request.flags ?? []).installDirectory };
}

function specRun(kind: InstallRequest['kind']): Repeat {
  return repeated(INSTALL, async (request, context, installerText) =>
    install({ ...request, kind, installerText }, context),
  );
}

const REPEATED: ReadonlyMap<string, Repeat> = new Map([
  ['install', specRun('install')],
  ['join', specRun('join')],
  ['upgrade', specRun('upgrade')],
  ['rollback', repeated(ROLLBACK, rollback)],
  ['uninstall', repeated(UNINSTALL, uninstall)],
  ['reset', repeated(RESET, reset)],
]);

/** A folder that was copied or moved tells of a run elsewhere: that place, the machine itself perhaps, is left alone. */
async function requireSameFolder(given: string, asked: string): Promise<void> {
  const real = async (path: string): Promise<string> => realpath(path).catch(() => path);
  if ((await real(given)) === (await real(asked))) return;
  throw new CurlewError('FILE_UNUSABLE', `resume: the last run in ${given} was begun in ${asked}`, {
    hint: 'the folder was copied or moved: give the whole command that began it, for the place that is meant',
  });
}

function unusable(): CurlewError {
  return new CurlewError('FILE_UNUSABLE', 'resume: the last run does not tell what it was asked for', {
    hint: 'give the whole command that began it',
  });
}
