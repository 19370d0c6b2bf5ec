/** Tokens by which clusters register at a hub, as files. */
import { resolve } from 'node:path';
import type { Context } from '../core/context.ts';
import { CurlewError, errnoOf, fileError } from '../core/errors.ts';
import { useCase, type RequestOf } from '../core/request.ts';
import { openClusterApi } from '../cluster/deliver/channel-cluster.ts';
import type { TokenKind } from '../fleet/hub/certificate-requests.ts';
import { requireFolder } from '../platform/files/name-file.ts';
import { writeNew } from '../platform/files/write-new.ts';
import { readAccepted, requireClusterName } from '../fleet/hub/run/accepted-agents.ts';
import { makeToken } from '../fleet/hub/run/token.ts';
import { HUB_TOKEN, REJOIN } from '../requests/registration.ts';

/** Which file was written. */
export interface MadeToken {
  readonly cluster: string;
  readonly file: string;
}

/** For a cluster that is new. Errors as {@link makeToken}; `FILE_EXISTS` for the file. */
export const makeHubToken = useCase(HUB_TOKEN, async (request, context) => writeToken(request, context, 'join'));

/** For a cluster that was accepted before: what is accepted by it replaces what there was. */
export const makeRejoinToken = useCase(REJOIN, async (request, context) => writeToken(request, context, 'rejoin'));

async function writeToken(
  request: RequestOf<typeof HUB_TOKEN.fields>,
  context: Context,
  kind: TokenKind,
): Promise<MadeToken> {
  const { cluster, out = `${cluster}.token`, expires, server } = request;
  requireClusterName(cluster);
  const { cwd, signal } = context;
  const path = resolve(cwd, out);
  await requireFolder(path);
  const { api, call } = await openClusterApi(request, context);
  const accepted = await readAccepted(call, cluster);
  if (accepted !== undefined && kind === 'join') {
    throw new CurlewError('CLUSTER_FAILED', `cannot make a token: ${cluster} has been accepted before`, {
      hint: `curlew fleet accept ${cluster} --rejoin makes one that replaces its agent; curlew fleet detach ${cluster} ends it`,
    });
  }
  if (accepted === undefined && kind === 'rejoin') {
    throw new CurlewError('NOT_FOUND', `cannot make a token: no cluster ${cluster} has been accepted`, {
      hint: `curlew hub token ${cluster} makes one for a new cluster`,
    });
  }
  const token = await makeToken(api, call, { cluster, kind, expires, server, signal });
  try {
    await writeNew(path, token.reveal(), 0o600);
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw fileError(`write ${path}`, error);
    throw new CurlewError('FILE_EXISTS', `cannot write ${out}: it already exists`, {
      hint: 'delete it, or use -o FILE',
    });
  }
  return { cluster, file: out };
}
