/** The Clusters of a hub, as they are seen. */
import { namespaceOf, readHubCluster, type HubCluster, type Live } from '../observe.ts';

/** A reader that reports each Cluster once that is in another namespace than its own: nothing else says why it gets nothing. */
export function clusterReader(report: (text: string) => void): (object: Live) => HubCluster | undefined {
  const reported = new Set<string>();
  return (object) => {
    const cluster = readHubCluster(object);
    const { uid, namespace = '', name } = object.metadata;
    if (cluster === undefined && !reported.has(uid)) {
      reported.add(uid);
      report(`Cluster ${namespace}/${name} is left alone: create it in its own namespace, ${namespaceOf(name)}`);
    }
    return cluster;
  };
}
