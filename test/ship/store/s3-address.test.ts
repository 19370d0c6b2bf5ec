import { checkedEndpoint, parseS3Address } from '../../../src/ship/store/s3-address.ts';
import { openStore } from '../../../src/ship/store/open.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('ship/store/s3-address');

test('an address has a bucket and a prefix', async ({ signal }) => {
  assert.equal(parseS3Address('s3://addons.example/a/dist/'), {
    bucket: 'addons.example',
    prefix: 'a/dist/',
    address: 's3://addons.example/a/dist',
  });
  assert.equal(parseS3Address('s3://addons.example'), {
    bucket: 'addons.example',
    prefix: '',
    address: 's3://addons.example',
  });
  const store = await openStore('s3://addons.example/dist', { cwd: '/', create: true, s3: { region: 'eu-1' }, signal });
  assert.is(store.address, 's3://addons.example/dist');
});

for (const address of [
  's3://',
  's3:///dist',
  's3://key:hush@bucket/dist',
  's3://bucket/dist?X-Amz-Signature=hush',
  's3://bucket/../dist',
  's3://bucket//dist',
  's3://a/dist',
]) {
  test(`${address.replace('hush', '…')} is no address`, () => {
    const error = assert.throwsWith(() => parseS3Address(address), 'USAGE');
    assert.not.match(error.message, 'hush');
  });
}

test('an endpoint is the address of a server without credentials', () => {
  assert.is(checkedEndpoint('http://127.0.0.1:7070/'), 'http://127.0.0.1:7070');
  assert.is(checkedEndpoint('https://s3.example.com/tenant?x=1'), 'https://s3.example.com/tenant');
  for (const text of ['127.0.0.1:7070', 'ftp://x', 'https://me:hush@x', '']) {
    const error = assert.throwsWith(() => checkedEndpoint(text), 'USAGE');
    assert.not.match(error.message, 'hush');
  }
});

test.run();
