import { refusedTwins, type NamedHost } from '../../src/machine/twins.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('machines that are one host');

function host(name: string, more: Partial<NamedHost['facts']> & { readonly key?: string } = {}): NamedHost {
  const { key = `SHA256:${name}`, ...facts } = more;
  return {
    name,
    hostKey: key,
    facts: { hostname: name, machineId: 'abc', productId: undefined, isPart: false, ...facts },
  };
}

function reasons(...hosts: readonly NamedHost[]): readonly string[] {
  return refusedTwins(hosts).map((one) => `${one.host}: ${one.reason}`);
}

test('an entry that leads to the host of another one is named, whichever comes first', () => {
  const [p2, copy] = [host('p2', { key: 'SHA256:k' }), host('p22', { hostname: 'p2', key: 'SHA256:k' })];
  const text = 'p22: it is the same host as p2: both have the hostname p2 and the machine-id abc; correct its address';
  assert.equal(reasons(p2, copy), [text]);
  assert.equal(reasons(copy, p2), [text]);
  // A fingerprint and a key can be of one host.
  assert.equal(reasons(p2, { ...copy, hostKey: 'ssh-ed25519 AAAA' }), [text]);
});

test('clones of a template are no single host: what differs is said, and how one gets a machine id of its own', () => {
  const cure = 'rm /etc/machine-id, systemd-machine-id-setup and a restart give it one of its own';
  assert.equal(reasons(host('p1'), host('p2')), [
    `p2: it has the machine-id of p1, abc, and another hostname and host key, as a clone of the same template: on it, ${cure}`,
  ]);
  const named = { hostname: 'debian', key: 'SHA256:k' };
  const [one, two] = [host('p1', { ...named, productId: 'a' }), host('p2', { ...named, productId: 'b' })];
  assert.match(reasons(one, two).join('; '), 'p2: it has the machine-id of p1, abc, and another product_uuid, as');
  // A node keeps what it has joined with.
  assert.match(reasons(host('p1'), host('p2', { isPart: true })).join('; '), /^p1: it has the machine-id of p2/);
  assert.equal(reasons(host('p1', { isPart: true }), host('p2', { isPart: true })), []);
  assert.equal(reasons(host('p1', { machineId: '' }), host('p2', { machineId: '' })), []);
});

test.run();
