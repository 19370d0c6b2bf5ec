/** `curlew install`: the packages of an installer spec onto this machine, and their hooks. */
import { specCommand } from '../spec-command.ts';

const DETAILS = `One of --bundle, --dir and --from is needed. A bundle brings its own installer spec; the one of --installer FILE, if given, takes its place. With --from nothing of that kind comes along: --installer is needed.

With --root DIR the install folder moves below DIR, and hooks run in a sandbox: they see the programs and most files of this machine, what they write lands in DIR/host, and they reach no network, no other process, no kernel setting and no credentials. --network host and --env NAME let in that much. Images are not loaded then. docs/trials.md says what is contained and what is not. --unconfined is no sandbox: hooks change this machine itself.

FLAGs are those of kURL's install.sh, such as ha or labels=a=b, on top of the spec; installer-spec-file=FILE lays a site's own spec over it.

When a run has failed, the same command goes on: what is applied already is not installed again.`;

export const install = specCommand('install', {
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
