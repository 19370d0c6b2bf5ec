/** Charts in the folder of a channel, and releases of a real helm program. */
import { writeFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { gzipSync } from 'node:zlib';
import { channelStatus, type ChannelAddonStatus } from '../../../src/app/channel-status.ts';
import type { Suite } from '../../support/suite.ts';
import { tarOf } from '../../support/tar-file.ts';
import { API_SERVER_PROGRAMS, type ApiServer } from './api-server.ts';
import { channelScene, type ChannelScene } from './channel-scene.ts';
import { cannotRun, ROOT, run } from './programs.ts';

/** By their major versions. */
export const HELMS: readonly { readonly major: number; readonly helm: string }[] = [3, 4].map((major) => ({
  major,
  helm: join(ROOT, `.curlew/tools/helm-${major}/helm`),
}));

/** The versions that can run here, over an API server; each other one is a skipped test of this title. */
export function helmsHere(test: Suite, title: string): typeof HELMS {
  return HELMS.filter(({ major, helm }) => {
    const reason = cannotRun(...API_SERVER_PROGRAMS, helm);
    if (reason !== undefined) test.skip(`${title} with helm ${major}`, reason);
    return reason === undefined;
  });
}

export const PAGE: string = `apiVersion: v1
kind: ConfigMap
metadata: {name: page}
data:
{{- range $key, $value := .Values.data }}
  {{ $key }}: {{ $value | quote }}
{{- end }}
`;
const STYLE = `{{ if .Values.style }}
apiVersion: v1
kind: ConfigMap
metadata: {name: style}
{{ end }}
`;
/** Kubernetes has not served this version of the kind since 1.25. */
export const GONE: string = `apiVersion: policy/v1beta1
kind: PodDisruptionBudget
metadata: {name: page}
spec: {minAvailable: 1, selector: {matchLabels: {app: page}}}
`;
/** Nothing makes it ready here. */
export const NEVER: string = `apiVersion: apps/v1
kind: Deployment
metadata: {name: never}
spec:
  selector: {matchLabels: {app: never}}
  template:
    metadata: {labels: {app: never}}
    spec: {containers: [{name: never, image: "never:1"}]}
`;

/** An archive with these templates. */
export function chartOf(
  version: string,
  templates: Readonly<Record<string, string>> = { page: PAGE, style: STYLE },
): Buffer {
  const files = Object.entries(templates).map(([name, data]) => ({
    path: posix.join('web/templates', `${name}.yaml`),
    data,
  }));
  const about = `apiVersion: v2\nname: web\nversion: ${version}\n`;
  return gzipSync(tarOf([{ path: 'web/Chart.yaml', data: about }, ...files]), { level: 1 });
}

/** An entry of the archive `web-1.0.0.tgz`, or of another chart. */
export function entryOf(values: object, chart: object = {}) {
  return { name: 'web', version: '1.0.0', chart: { package: 'web-1.0.0.tgz', values, ...chart } };
}

export interface ChartScene extends ChannelScene {
  /** Runs helm in the namespace of the scene. */
  readonly helm: (...args: readonly string[]) => Promise<string>;
  /** What a pass needs to find helm. */
  readonly given: { readonly helm: string };
  /** Data of a ConfigMap as JSON; empty if it does not exist. */
  readonly data: (name: string) => Promise<string>;
  readonly release: () => Promise<ChannelAddonStatus['release']>;
  /** Messages of a pass; empty if there is none. */
  readonly error: (request?: object) => Promise<string>;
}

/** A scene with an archive beside its channel. */
export async function chartScene(server: ApiServer, helm: string): Promise<ChartScene> {
  const scene = await channelScene(server);
  const { box, namespace, context, kubectl } = scene;
  await writeFile(box.at('web-1.0.0.tgz'), chartOf('1.0.0'));
  return {
    ...scene,
    given: { helm },
    helm: async (...args) => run(helm, [...args, '--namespace', namespace, '--kubeconfig', server.kubeconfig]),
    data: async (name) => kubectl('get', 'configmap', name, '--ignore-not-found', '-o', 'jsonpath={.data}'),
    release: async () =>
      (await channelStatus({ kubeconfig: server.kubeconfig }, context)).addons.find(
        (one) => one.namespace === namespace,
      )?.release,
    error: async (given = { helm }) =>
      (await scene.apply(given)).addons.flatMap(({ errors }) => errors).map(({ message }) => message)[0] ?? '',
  };
}
