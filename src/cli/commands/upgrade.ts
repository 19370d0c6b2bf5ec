/** `curlew upgrade`: upgrade this node to what a spec says. */
import { specCommand } from '../spec-command.ts';

const DETAILS = `On the node that add-ons were installed from, which is upgraded first, this is \`curlew install\` with the new bundle. On every other node the container runtime is installed, the join hooks of all add-ons run, then kubernetes of this node is upgraded.

FLAGs are those of kURL's upgrade.sh, such as ha or labels=a=b, on top of the spec; installer-spec-file=FILE lays a site's own spec over it.

When a run has failed, the same command goes on.`;

export const upgrade = specCommand('upgrade', {
  details: DETAILS,
  examples: ['curlew upgrade --bundle bundle.tar.gz'],
});
