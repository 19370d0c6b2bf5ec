/** The command of docs/preflights.md, on a machine with two processors that meets all other requirements. */
import * as assert from '../../support/assert.ts';
import { unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';
import { installerSpec, noPageMachine, pageMachine, plainAddons } from '../support/page-machine.ts';
import { makeNode } from '../support/page-node.ts';

const test = suite('components/pages/preflights', { timeoutMs: 300_000 });

unless(noPageMachine(), test)('a machine is checked', async () => {
  await using machine = await pageMachine('docs/preflights.md', {
    files: { ...plainAddons('kubernetes@1.31.5'), 'installer.yaml': installerSpec('kubernetes: { version: latest }') },
  });
  await makeNode(machine);
  await machine.run(`curlew publish --to /srv/dist --release v1
curlew bundle installer.yaml --from /srv/dist -o bundle.tar.gz`);
  await machine.block('curlew preflight', { status: 3 });
  await machine.run('curlew preflight --bundle bundle.tar.gz --ignore-warnings', { status: 2 });
  assert.match(
    await machine.run('curlew preflight --bundle bundle.tar.gz --ignore "Number of CPUs"'),
    /Number of CPUs[^]*\n12 passed, .*ignored/,
  );
  const site = 'curlew preflight --bundle bundle.tar.gz installer-spec-file=site.yaml primary-host=10.0.0.2';
  await machine.run(`printf 'apiVersion: cluster.kurl.sh/v1beta1\\nkind: Installer\\n' >site.yaml\n${site}`, {
    status: 3,
  });
  const ended = await machine.run(`curlew install --bundle bundle.tar.gz --preflights enforce-warnings`, {
    status: 21,
  });
  assert.match(ended, 'error PREFLIGHT_FAILED');
  assert.equal(machine.left(), []);
});

test.run();
