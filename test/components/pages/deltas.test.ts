/** The commands of docs/deltas.md, on a node whose first bundle is already installed. */
import * as assert from '../../support/assert.ts';
import { unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';
import { installerSpec, noPageMachine, pageMachine, plainAddons } from '../support/page-machine.ts';

const test = suite('components/pages/deltas', { timeoutMs: 300_000 });

unless(noPageMachine(), test)('a node gets a bundle without what it has', async () => {
  await using machine = await pageMachine('docs/deltas.md', {
    files: { ...plainAddons('web@1.0.0', 'shop@1.0.0'), 'installer.yaml': installerSpec('web: { version: latest }') },
  });
  await machine.run(`curlew publish --to /srv/dist --release v1
curlew bundle installer.yaml --from /srv/dist -o bundle-1.tar.gz
curlew install --bundle bundle-1.tar.gz --yes
printf '  shop: { version: latest }\\n' >>installer.yaml`);
  await machine.block('curlew inventory');
  await machine.run('test -s /etc/web.txt && test -s /etc/shop.txt && curlew verify bundle-2.tar.gz');
  assert.match(
    await machine.run('cat inventory.json'),
    /^\{"digest":"sha256:\w+","format":1,"packages":\["addons\/web\/1.0.0"\],"payloads":/,
  );
  assert.equal(machine.left(), []);
});

test.run();
