/** `curlew install`: installs the packages of an installer spec on this machine and runs their hooks. */
import { INSTALL } from '../../requests/node.ts';
import { specCommand } from '../spec-command.ts';

const DETAILS = `One of --bundle, --dir and --from is required. A bundle contains an installer spec; --installer FILE replaces it. For a store, --installer FILE names the spec; a folder of builds is installed whole without one.

With --root DIR the install folder is in DIR, and hooks run in a sandbox: they see the programs and most files of this machine, their writes go to DIR/host, and they have no access to the network, other processes, kernel settings and credentials. --network host and --env NAME allow access to these. --kubeconfig FILE lets hooks change a cluster, which the plan names. Images are not loaded. docs/trials.md describes the limits of the sandbox. --unconfined disables the sandbox: hooks change this machine itself.

FLAGs are those of kURL's install.sh, such as ha or labels=a=b, and override the spec; installer-spec-file=FILE merges a site's own spec.

After a failed run, run the same command again to resume: applied add-ons are not installed again.`;

export const command = specCommand(INSTALL, 'install', {
  details: DETAILS,
  examples: [
    'curlew install --bundle bundle.tar.gz',
    'curlew install --bundle bundle.tar.gz --dry-run --out plan.json',
    'curlew install --plan plan.json',
    'curlew install --from https://example.com/dist --installer installer.yaml',
    'curlew install --bundle bundle.tar.gz ha installer-spec-file=site.yaml',
    'curlew install --bundle bundle.tar.gz --root /tmp/trial',
  ],
});
