"""The archive: results of finished runs that the repository keeps."""
