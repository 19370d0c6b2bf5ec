/** The command of docs/pulling.md, from a web server with a signed bundle. */
import * as assert from '../../support/assert.ts';
import { unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';
import { installerSpec, noPageMachine, pageMachine, plainAddons } from '../support/page-machine.ts';
import { startWeb, WEB_PROGRAM } from '../support/page-servers.ts';

const test = suite('components/pages/pulling', { timeoutMs: 300_000 });

unless(noPageMachine(WEB_PROGRAM, 'curl'), test)('a signed bundle is fetched, and the fetch resumed', async () => {
  await using machine = await pageMachine('docs/pulling.md', {
    files: { ...plainAddons('web@1.0.0'), 'installer.yaml': installerSpec('web: { version: latest }') },
    hosts: ['dl.example'],
  });
  await machine.run(`mkdir /srv/www
curlew publish --to /srv/dist --release v1
curlew bundle installer.yaml --from /srv/dist -o /srv/www/bundle.tar.gz
curlew keygen release
curlew sign /srv/www/bundle.tar.gz --key release.key`);
  await startWeb(machine, { 'dl.example': '/srv/www' });
  // A download of another program under that name is resumed.
  await machine.run('curl -sS --range 0-9999999 https://dl.example/bundle.tar.gz -o bundle.tar.gz');
  const printed = await machine.block('curlew pull');
  const [, size, fetched] = /: ok, (\d+(?:\.\d)?) MB, (\d+(?:\.\d)?) MB fetched$/m.exec(printed) ?? [];
  assert.is((Number(size) - Number(fetched)).toFixed(1), '10.0', printed);
  await machine.run(`cmp bundle.tar.gz /srv/www/bundle.tar.gz
cmp bundle.tar.gz.sigstore.json /srv/www/bundle.tar.gz.sigstore.json
test ! -e bundle.tar.gz.partial
test ! -e bundle.tar.gz.partial.json
curlew install --bundle bundle.tar.gz --key release.pub --dry-run`);
  assert.equal(machine.left(), []);
});

test.run();
