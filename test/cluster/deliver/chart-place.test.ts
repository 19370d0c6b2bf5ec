import { chartPlace } from '../../../src/cluster/deliver/helm.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('app/chart-place');

const REPO = { repoURL: 'https://charts.example.com', oci: undefined, name: 'web' };
const OCI = { repoURL: undefined, oci: 'oci://example.com/charts/', name: 'web' };
const LOCAL = { channel: '/etc/channel.yaml', allowHttp: [] };

test('a chart is named by its repository, or by its reference', () => {
  assert.equal(chartPlace(REPO, LOCAL), ['web', '--repo', 'https://charts.example.com']);
  assert.equal(chartPlace(OCI, LOCAL), ['oci://example.com/charts/web']);
  assert.equal(chartPlace({ ...OCI, oci: 'oci://example.com/web', name: undefined }, LOCAL), ['oci://example.com/web']);
});

test('plain http is for hosts that are allowed by name', () => {
  const plain = { ...REPO, repoURL: 'http://charts.example.com' };
  assert.throwsWith(
    () => chartPlace(plain, LOCAL),
    'FETCH_FAILED',
    /^cannot download the chart web: plain http to charts/,
  );
  const allowed = { ...LOCAL, allowHttp: ['Charts.example.com', 'example.com'] };
  assert.equal(chartPlace(plain, allowed), ['web', '--repo', 'http://charts.example.com']);
  assert.equal(chartPlace(OCI, allowed), ['oci://example.com/charts/web', '--plain-http']);
});

test('a channel on another machine cannot name internal addresses', () => {
  for (const channel of ['https://example.com/channel.yaml', 's3://bucket/channel.yaml']) {
    for (const host of ['127.0.0.1:8080', '169.254.169.254', 'localhost', '[::1]']) {
      const remote = { channel, allowHttp: [] };
      assert.throwsWith(
        () => chartPlace({ ...REPO, repoURL: `https://${host}/` }, remote),
        'FETCH_FAILED',
        /a loopback, link-local/,
      );
      assert.throwsWith(
        () => chartPlace({ ...OCI, oci: `oci://${host}/a` }, remote),
        'FETCH_FAILED',
        /a loopback, link-local/,
      );
    }
  }
});

test.run();
