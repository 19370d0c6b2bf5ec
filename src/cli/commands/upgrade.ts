/** `curlew upgrade`: upgrades this node to the versions in a spec. */
import { UPGRADE } from '../../requests/node.ts';
import { specCommand } from '../spec-command.ts';

const DETAILS = `On the node from which add-ons were installed, which must be upgraded first, this is \`curlew install\` with the new bundle. On every other node, curlew installs the container runtime, runs the join hooks of all add-ons, then upgrades kubernetes on this node. It is refused where nothing is installed, unless that is a node of a cluster.

A node of a cluster is upgraded only by one minor version of Kubernetes, after its first control plane: images are loaded, etcd is saved, the node is cordoned and drained, and uncordoned when it is ready; then the next node is named. APIs in use that the version no longer has, and disruption budgets that allow no eviction for now, are named before anything starts.

FLAGs are those of kURL's upgrade.sh, such as ha or labels=a=b, and override the spec; installer-spec-file=FILE merges a site's own spec.

After a failed run, run the same command again to resume.`;

export const command = specCommand(UPGRADE, 'upgrade', {
  details: DETAILS,
  examples: ['curlew upgrade --bundle bundle.tar.gz'],
});
