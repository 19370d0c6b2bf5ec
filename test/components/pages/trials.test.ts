/** The commands of docs/trials.md: a trial whose hooks change a cluster. */
import * as assert from '../../support/assert.ts';
import { unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';
import { leftToOtherRuns } from '../../support/sweep.ts';
import { OTHER_USER } from '../support/other-user.ts';
import { installerSpec, noPageMachine, pageMachine, plainAddons } from '../support/page-machine.ts';
import { CLUSTER_PROGRAMS, startCluster } from '../support/page-servers.ts';

const test = suite('components/pages/trials', { timeoutMs: 300_000 });

const HOOKS = `function web() { kubectl create configmap web --from-literal=a=b; touch /etc/web.txt; }
function web_pre_remove() { kubectl delete configmap web && kubectl create configmap removed; }
function web_uninstall() { rm /etc/web.txt; }
`;

const READERS = [
  { who: 'root', user: undefined },
  { who: 'an ordinary user', user: OTHER_USER },
] as const;

for (const reader of READERS) {
  const { who, user } = reader;
  const reason = noPageMachine(...CLUSTER_PROGRAMS) ?? leftToOtherRuns(reader, READERS);
  unless(reason, test)(`hooks of a trial of ${who} change the cluster that it names`, async () => tryPage(user));
}

async function tryPage(user: number | undefined): Promise<void> {
  await using machine = await pageMachine('docs/trials.md', {
    user,
    files: {
      ...plainAddons('web@1.0.0'),
      'addons/web/1.0.0/install.sh': HOOKS,
      'installer.yaml': installerSpec('web: { version: latest }'),
    },
  });
  await machine.run(`curlew publish --to /srv/dist --release v1
curlew bundle installer.yaml --from /srv/dist -o bundle.tar.gz`);
  await using cluster = await startCluster(machine);
  await machine.run('kubectl config rename-context test kind-trial && kubectl config unset current-context');
  const printed = await machine.block('--context kind-trial', { answer: 'y' });
  assert.match(
    printed,
    /Plan: [^]*hooks change\s+the cluster\s+https:[^]*\(context\s+kind-trial,\s+Kubernetes\s+v1\.[^]*Nothing has changed/,
  );
  assert.match(printed, /web +1\.0\.0 +installed [^]*Uninstall web 1\.0\.0\? [^]*web +1\.0\.0 +removed/);
  const maps = await cluster.kubectl(['get', 'configmaps', '--all-namespaces', '-o', 'name']);
  assert.match(maps, 'configmap/removed');
  // curlew itself writes nothing into the cluster, and nothing onto the machine outside of the trial.
  assert.not.match(maps, 'curlew-records');
  await machine.run(
    '! test -e /etc/web.txt && ! test -e /var/lib/curlew && ! grep -r client /tmp/trial/var/lib/curlew',
  );
  assert.equal(machine.left(), []);
}

test.run();
