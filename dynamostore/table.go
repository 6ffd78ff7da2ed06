package dynamostore

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	partitionKey = "p"
	sortKey      = "s"
	indexName    = "due"
	indexShard   = "q"
	indexWake    = "d"
	timeToLive   = "x"
)

// Table is the table that a Store needs, paid by the request. TimeToLive belongs to it.
func Table(name string) *dynamodb.CreateTableInput {
	return &dynamodb.CreateTableInput{
		TableName:   &name,
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String(partitionKey), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String(sortKey), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String(indexShard), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String(indexWake), AttributeType: types.ScalarAttributeTypeN},
		},
		KeySchema: keySchema(partitionKey, sortKey),
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName:  aws.String(indexName),
			KeySchema:  keySchema(indexShard, indexWake),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}},
	}
}

func keySchema(hash, sorted string) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: &hash, KeyType: types.KeyTypeHash},
		{AttributeName: &sorted, KeyType: types.KeyTypeRange},
	}
}

// TimeToLive has DynamoDB remove what has expired.
func TimeToLive(table string) *dynamodb.UpdateTimeToLiveInput {
	return &dynamodb.UpdateTimeToLiveInput{TableName: &table, TimeToLiveSpecification: &types.TimeToLiveSpecification{
		AttributeName: aws.String(timeToLive), Enabled: aws.Bool(true),
	}}
}
