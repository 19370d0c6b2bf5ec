/** Whether the etcd of this machine's cluster takes requests: without a quorum, an API server answers with anything but the reason. */
import type { Context } from '../../core/context.ts';
import { CurlewError, requireRefusal } from '../../core/errors.ts';
import { openEtcd, type Etcd } from '../../cluster/kube/etcd.ts';
import { lostQuorum } from '../etcd.ts';

const HINT =
  'start the machines of the others, or etcd on them; if they cannot come back, curlew etcd restore on one that answers';

type Open = () => Promise<Pick<Etcd, 'members' | typeof Symbol.dispose> | undefined>;

/** Why it takes none; undefined if it does, and where nothing is known of it: without a member here, or if that does not answer. */
export async function quorumProblem(
  { signal }: Pick<Context, 'signal'>,
  open: Open = async () => openEtcd({ signal }),
): Promise<CurlewError | undefined> {
  try {
    using etcd = await open();
    const lost = etcd && lostQuorum(await etcd.members());
    return lost === undefined ? undefined : new CurlewError('CLUSTER_FAILED', lost, { hint: HINT });
  } catch (error) {
    requireRefusal(error, signal);
    return undefined;
  }
}
