import { parseInstaller } from '../../../src/spec/parse.ts';
import { extrasOf, systemsOf, withoutAddons, type ReadSpec } from '../../../src/steps/bundle/choice.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('steps/bundle/choice');

const SPEC = `apiVersion: cluster.kurl.sh/v1beta1
kind: Installer
metadata:
  name: site
spec:
  kubernetes:
    version: 1.36.1
  certManager:
    version: 1.18.2
`;

function read(text: string): ReadSpec {
  const { installer, document } = parseInstaller('site.yaml', text);
  assert.ok(installer && document);
  return { bytes: Buffer.from(text), installer, document };
}

test('a package without a version is the newest one, and a version without a name is that of Kubernetes', () => {
  assert.equal(extrasOf({ with: ['flannel', 'traefik@1.2.x'], upgradeFrom: ['1.34.1', 'etcd@3.5.0'] }), {
    also: [
      { name: 'flannel', version: 'latest' },
      { name: 'traefik', version: '1.2.x' },
    ],
    upgradeFrom: [
      { name: 'kubernetes', version: '1.34.1' },
      { name: 'etcd', version: '3.5.0' },
    ],
  });
  assert.throwsWith(
    () => extrasOf({ with: ['not a name'] }),
    'USAGE',
    /--with "not a name@latest": not a name and a version/,
  );
});

test('a system is named by its folder or by another name that has the same packages, and a wrong name gets the nearest', () => {
  assert.is(systemsOf({}), undefined);
  assert.equal(systemsOf({ os: ['rocky-9'] }), systemsOf({ os: ['rhel-9'] }));
  assert.throwsWith(
    () => systemsOf({ os: ['ubunto-22.04'] }),
    'USAGE',
    /--os "ubunto-22.04": unknown operating system/,
  );
});

test('an add-on is left out of a spec by its folder or by its key, and one that the spec does not have is named', () => {
  for (const name of ['cert-manager', 'certManager']) {
    const { installer, bytes } = withoutAddons(read(SPEC), [name], 'site.yaml');
    assert.equal(
      installer.addons.map((one) => one.name),
      ['kubernetes'],
    );
    assert.not.match(String(bytes), 'certManager');
  }
  assert.throwsWith(
    () => withoutAddons(read(SPEC), ['cert-manger'], 'site.yaml'),
    'SPEC_INVALID',
    /--without cert-manger: site.yaml has no/,
  );
  const all = ['kubernetes', 'cert-manager'];
  assert.throwsWith(() => withoutAddons(read(SPEC), all, 'site.yaml'), 'SPEC_INVALID', /site.yaml has no other add-on/);
});

test.run();
