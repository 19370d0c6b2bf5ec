/** Lets a site forget its hub. */
import { resolve } from 'node:path';
import { AgentFolder } from '../fleet/agent/folder.ts';
import type { Context } from '../core/context.ts';
import { CurlewError } from '../core/errors.ts';
import { useCase, type RequestOf } from '../core/request.ts';
import { AGENT_UNREGISTER } from '../requests/registration.ts';

export interface Unregistration {
  readonly cluster: string;
  readonly folder: string;
  readonly done: boolean;
}

/** The files that would be forgotten. `NOT_FOUND` if the site is registered nowhere. */
export const planUnregistration = useCase(AGENT_UNREGISTER, async (request, context) =>
  unregister(request, context, false),
);

/** Deletes the certificate, its key, and the trusted keys; add-ons stay. The hub is not asked. */
export const unregisterAgent = useCase(AGENT_UNREGISTER, async (request, context) =>
  unregister(request, context, true),
);

async function unregister(
  { root }: RequestOf<typeof AGENT_UNREGISTER.fields>,
  { cwd }: Context,
  isFor: boolean,
): Promise<Unregistration> {
  const folder = new AgentFolder(root === undefined ? undefined : resolve(cwd, root));
  const settings = await folder.readSettings();
  if (settings === undefined) {
    throw new CurlewError('NOT_FOUND', `cannot unregister: ${folder.path} names no hub`, {
      hint: 'add --root DIR if the agent is below another folder',
    });
  }
  if (isFor) {
    await using _claim = await folder.claim();
    await folder.forget();
  }
  return { cluster: settings.cluster, folder: folder.path, done: isFor };
}
