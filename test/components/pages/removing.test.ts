/** The commands of docs/removing.md, on a node with add-ons that clean up and one that does not. */
import * as assert from '../../support/assert.ts';
import { unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';
import { installerSpec, noPageMachine, pageMachine, plainAddons } from '../support/page-machine.ts';

const test = suite('components/pages/removing', { timeoutMs: 300_000 });

/** The hooks of an add-on that leaves nothing, each of which writes down that it ran. */
const hooks = (name: string, version: string): string => `function ${name}() { echo ${version} >/etc/${name}.txt; }
function ${name}_pre_remove() { echo ${name}_pre_remove >>/root/removals; }
function ${name}_uninstall() { echo ${name}_uninstall >>/root/removals; rm /etc/${name}.txt; }
`;

unless(noPageMachine(), test)('a node goes back, and add-ons leave it', async () => {
  await using machine = await pageMachine('docs/removing.md', {
    files: {
      ...plainAddons('registry@1.0.0', 'registry@2.0.0', 'velero@1.0.0', 'web@1.0.0', 'shop@1.0.0'),
      'addons/registry/1.0.0/install.sh': hooks('registry', '1.0.0'),
      'addons/registry/2.0.0/install.sh': hooks('registry', '2.0.0'),
      'addons/velero/1.0.0/install.sh': hooks('velero', '1.0.0'),
      'old.yaml': installerSpec(
        'registry: { version: 1.0.0 }',
        'velero: { version: 1.0.0 }',
        'shop: { version: 1.0.0 }',
      ),
      'new.yaml': installerSpec('registry: { version: 2.0.0 }'),
      'installer.yaml': installerSpec('web: { version: 1.0.0 }'),
    },
  });
  await machine.run(`curlew publish --to /srv/dist --release v1
curlew install --from /srv/dist --installer old.yaml
curlew install --from /srv/dist --installer new.yaml
curlew bundle installer.yaml --from /srv/dist -o bundle.tar.gz`);
  assert.match(
    await machine.run('! curlew uninstall registry'),
    'cannot ask for confirmation: standard input is not a terminal\n  hint: add --yes',
  );
  const printed = await machine.block('curlew rollback registry', { answer: 'yes' });
  assert.match(printed, /registry +2\.0\.0 → 1\.0\.0/);
  assert.match(printed, /hooks +registry_pre_remove\s+registry_uninstall\s+Nothing has changed/);
  assert.match(printed, /Uninstall velero 1\.0\.0, registry 1\.0\.0\? /);
  assert.match(printed, /shop +1\.0\.0 +removed \(it is not in the\s+spec\)[^]*it has no shop_uninstall/);
  assert.match(printed, /Remove everything on this node [^]*web +1\.0\.0 +removed/);
  // The parts in the cluster of all add-ons go first.
  assert.equal((await machine.run('cat /root/removals')).split('\n'), [
    'velero_pre_remove',
    'registry_pre_remove',
    'velero_uninstall',
    'registry_uninstall',
  ]);
  await machine.run('! test -e /etc/registry.txt && test -e /etc/shop.txt && ! test -e /var/lib/curlew');
  assert.equal(machine.left(), []);
});

test.run();
